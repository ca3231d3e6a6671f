import warnings

import numpy as np
import pytest
import torch

from surelabel import Recognizer, evaluate
from surelabel.config import Choice, Run
from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, UnknownName
from surelabel.features import FeatureCache, encode_image_files
from surelabel.methods.text_scoring.text_scorer import encode_synonyms_for_text_scorer
from surelabel.recognizer import check_recognizer_can_localize, localize_labels

LABELS = ["lion", "ship|boat", "pizza", "guitar"]
NAMES = ["lion", "guitar", "pizza"]


@pytest.fixture(scope="module")
def test():
    return collection("scenes-80", split="test").take(range(40))


@pytest.fixture(scope="module")
def vit():
    return load_encoder("tiny-vit")


@pytest.fixture
def made(vit, tmp_path):
    """A recognizer of tiny-vit with a method by name."""

    def recognizer(method, **settings):
        run = Run(encoder=Choice("tiny-vit"), method=Choice(method, settings))
        return Recognizer(run, LABELS, encoder=vit, cache=FeatureCache(tmp_path))

    return recognizer


def test_each_image_has_maps_of_the_labels_it_was_asked_for(made, test):
    recognizer = made("dense_regions")
    first, second = test.paths[:2]
    found = localize_labels(recognizer, {first: ["pizza"], second: ["guitar", "lion"]})
    paths, maps = recognizer.localize([first, second])
    assert list(found) == paths == [first, second]
    assert list(found[second].maps) == ["guitar", "lion"]
    np.testing.assert_array_equal(found[second].maps["lion"], maps[1, 0])
    np.testing.assert_array_equal(found[first].maps["pizza"], maps[0, 2])


def test_a_region_belongs_to_the_label_that_is_strongest_there_among_all(made, test):
    recognizer = made("dense_regions")
    path = test.paths[0]
    seen = localize_labels(recognizer, {path: ["lion"]})[path]
    _, maps = recognizer.localize([path])
    for y, x in [(0, 0), (3, 4), (7, 2)]:
        strongest = max(range(4), key=lambda c: maps[0, c, y, x])
        assert seen.strongest_labels[y, x] == recognizer.names[strongest]


def test_frozen_similarities_are_those_of_plain_patches(made, vit, test, tmp_path):
    seen = localize_labels(made("dense_regions"), {test.paths[0]: ["ship"]})[test.paths[0]]
    patches = encode_image_files(vit, test.paths[:1], kind="patches", cache=FeatureCache(tmp_path))
    text = encode_synonyms_for_text_scorer(vit, ["ship|boat"], ["a photo of a {}."])[0]
    cosines = patches.features.patches[0] @ text
    assert seen.frozen_similarities["ship"].shape == (8, 8)
    assert np.corrcoef(seen.frozen_similarities["ship"].ravel(), cosines)[0, 1] > 0.9
    assert not seen.adapted_similarities
    assert seen.region_weights is None


def test_an_encoder_alone_has_nothing_before_it(made, test):
    seen = localize_labels(made("zero_shot"), {test.paths[0]: ["lion"]})[test.paths[0]]
    assert seen.maps["lion"].shape == (8, 8)
    assert not seen.frozen_similarities


def test_matched_regions_say_how_much_each_counts_and_what_became_of_it(made, test):
    recognizer = made("recover_match")
    recognizer.is_fitted = True
    path = test.paths[0]
    seen = localize_labels(recognizer, {path: ["lion", "pizza"]})[path]
    assert (
        list(seen.maps)
        == list(seen.frozen_similarities)
        == list(seen.adapted_similarities)
        == ["lion", "pizza"]
    )
    assert seen.region_weights.sum() == pytest.approx(1, abs=1e-5)
    assert np.ptp(seen.maps["lion"]) > 0
    assert np.abs(seen.adapted_similarities["lion"]).max() <= 1 + 1e-6
    assert not np.allclose(
        seen.adapted_similarities["lion"], seen.frozen_similarities["lion"], atol=0.01
    )


def test_a_image_that_cannot_be_read_is_left_out(made, test, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    wanted = {str(tmp_path / "bad.jpg"): ["lion"], test.paths[0]: ["lion"]}
    for method in ("zero_shot", "dense_regions"):
        assert list(localize_labels(made(method), wanted)) == [test.paths[0]]


def test_a_label_that_the_recognizer_has_not_is_named_with_its_image(made, test):
    recognizer, path = made("zero_shot"), test.paths[0]
    with pytest.raises(
        UnknownName, match=r"got 'zebra' for .* Use one of the 4 labels, such as 'lion'"
    ):
        localize_labels(recognizer, {path: ["lion", "zebra"]})


def test_many_images_are_the_same_as_one_by_one(made, test):
    recognizer = made("dense_regions")
    together = localize_labels(recognizer, {path: ["pizza"] for path in test.paths[:20]})
    alone = localize_labels(recognizer, {test.paths[17]: ["pizza"]})
    np.testing.assert_allclose(
        together[test.paths[17]].maps["pizza"], alone[test.paths[17]].maps["pizza"], atol=1e-4
    )


def test_the_examples_of_an_evaluation_have_regions(made, test):
    found = evaluate(made("dense_regions"), test.take(range(12)))
    assert found.worst_examples
    for example in (*found.worst_examples, *found.best_examples):
        assert list(example.regions.frozen_similarities) == [tag.name for tag in example.labels]


def test_a_recognizer_that_cannot_say_where_is_refused_at_once(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        encoder = load_encoder("timm:test_resnet", pretrained=False)
    recognizer = Recognizer(
        Run(method=Choice("linear")), LABELS, encoder=encoder, cache=FeatureCache(tmp_path)
    )
    with pytest.raises(ConfigError, match="requires patch features in the joint space"):
        check_recognizer_can_localize(recognizer)
