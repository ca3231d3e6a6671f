import warnings

import numpy as np
import pytest
import torch

from surelabel import Recognizer, evaluate
from surelabel.backbones import load_backbone
from surelabel.config import Choice, Run
from surelabel.data import FeatureCache, collection
from surelabel.encoding import encode
from surelabel.errors import ConfigError, UnknownName
from surelabel.methods.wording import spelled
from surelabel.recognizer import check_regions, regions_of

NAMES = ["lion", "ship|boat", "pizza", "guitar"]


@pytest.fixture(scope="module")
def test():
    return collection("scenes-80", split="test").take(range(40))


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-vit")


@pytest.fixture
def made(backbone, tmp_path):
    """A recognizer of tiny-vit with a method by name."""

    def recognizer(method, **settings):
        run = Run(backbone=Choice("tiny-vit"), method=Choice(method, settings))
        return Recognizer(run, NAMES, backbone=backbone, cache=FeatureCache(tmp_path))

    return recognizer


def test_each_picture_has_maps_of_the_labels_it_was_asked_for(made, test):
    recognizer = made("dense_regions")
    first, second = test.paths[:2]
    found = regions_of(recognizer, {first: ["pizza"], second: ["guitar", "lion"]})
    paths, maps = recognizer.where([first, second])
    assert list(found) == paths == [first, second]
    assert list(found[second].maps) == ["guitar", "lion"]
    np.testing.assert_array_equal(found[second].maps["lion"], maps[1, 0])
    np.testing.assert_array_equal(found[first].maps["pizza"], maps[0, 2])


def test_a_region_belongs_to_the_label_that_is_strongest_there_among_all(made, test):
    recognizer = made("dense_regions")
    path = test.paths[0]
    seen = regions_of(recognizer, {path: ["lion"]})[path]
    _, maps = recognizer.where([path])
    for y, x in [(0, 0), (3, 4), (7, 2)]:
        strongest = max(range(4), key=lambda c: maps[0, c, y, x])
        assert seen.owners[y, x] == recognizer.names[strongest]


def test_before_a_method_of_its_own_stands_what_plain_patches_say(made, backbone, test, tmp_path):
    seen = regions_of(made("dense_regions"), {test.paths[0]: ["ship"]})[test.paths[0]]
    patches = encode(backbone, test.paths[:1], part="patches", cache=FeatureCache(tmp_path))
    text = spelled(backbone, ["ship|boat"], ["a photo of a {}."])[0]
    cosines = patches.features.patches[0] @ text
    assert seen.before["ship"].shape == (8, 8)
    assert np.corrcoef(seen.before["ship"].ravel(), cosines)[0, 1] > 0.9
    assert not seen.after
    assert seen.presence is None


def test_an_encoder_alone_has_nothing_before_it(made, test):
    seen = regions_of(made("zero_shot"), {test.paths[0]: ["lion"]})[test.paths[0]]
    assert seen.maps["lion"].shape == (8, 8)
    assert not seen.before


def test_matched_regions_say_how_much_each_counts_and_what_became_of_it(made, test):
    recognizer = made("recover_match")
    recognizer.fitted = True
    path = test.paths[0]
    seen = regions_of(recognizer, {path: ["lion", "pizza"]})[path]
    assert list(seen.maps) == list(seen.before) == list(seen.after) == ["lion", "pizza"]
    assert seen.presence.sum() == pytest.approx(1, abs=1e-5)
    assert np.ptp(seen.maps["lion"]) > 0
    assert np.abs(seen.after["lion"]).max() <= 1 + 1e-6
    assert not np.allclose(seen.after["lion"], seen.before["lion"], atol=0.01)


def test_a_picture_that_cannot_be_read_is_left_out(made, test, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    wanted = {str(tmp_path / "bad.jpg"): ["lion"], test.paths[0]: ["lion"]}
    for method in ("zero_shot", "dense_regions"):
        assert list(regions_of(made(method), wanted)) == [test.paths[0]]


def test_a_label_that_the_recognizer_has_not_is_named_with_its_picture(made, test):
    recognizer, path = made("zero_shot"), test.paths[0]
    with pytest.raises(UnknownName, match=r"Got 'zebra' for .*; take one of its 4, such as 'lion'"):
        regions_of(recognizer, {path: ["lion", "zebra"]})


def test_many_pictures_are_the_same_as_one_by_one(made, test):
    recognizer = made("dense_regions")
    together = regions_of(recognizer, {path: ["pizza"] for path in test.paths[:20]})
    alone = regions_of(recognizer, {test.paths[17]: ["pizza"]})
    np.testing.assert_allclose(
        together[test.paths[17]].maps["pizza"], alone[test.paths[17]].maps["pizza"], atol=1e-4
    )


def test_the_examples_of_an_evaluation_have_regions(made, test):
    found = evaluate(made("dense_regions"), test)
    for example in (*found.worst, *found.best):
        assert list(example.regions.before) == [tag.name for tag in example.tags]


def test_a_recognizer_that_cannot_say_where_is_refused_at_once(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        encoder = load_backbone("timm:test_resnet", pretrained=False)
    recognizer = Recognizer(
        Run(method=Choice("linear")), NAMES, backbone=encoder, cache=FeatureCache(tmp_path)
    )
    with pytest.raises(ConfigError, match="gives no patch vectors in the joint space"):
        check_regions(recognizer)
