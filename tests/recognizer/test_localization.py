import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from surelabel import Recognizer, evaluate
from surelabel.config import Choice, Run
from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, UnknownName
from surelabel.features import FeatureCache, encode_image_files
from surelabel.methods import TextScorer, ZeroShot
from surelabel.methods.text_scoring.text_scorer import encode_with_synonyms
from surelabel.recognizer import check_can_localize, localize_labels
from surelabel.recognizer.localization import compute_heat_maps
from surelabel.records import Images

LABELS = ["lion", "ship|boat", "pizza", "guitar"]
NAMES = ["lion", "guitar", "pizza"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-rn")


@pytest.fixture(scope="module")
def source():
    return Images(list(collection("scenes-80", split="test").paths[:3]))


class OfAttention(torch.nn.Module):
    """Needs more than vectors, and says what vectors are compared with."""

    needs, image_size = ("attention",), None

    def __init__(self, encoder):
        super().__init__()
        self.text_scorer = TextScorer(encoder, NAMES)

    def forward(self, features):
        assert features.attention is not None
        return self.text_scorer(features.patches).amax(dim=1)


class WithMaps(torch.nn.Module):
    """Has its own heat maps."""

    needs, image_size = ("trunk",), 160

    def heat_maps(self, features):
        down, across = features.grid
        tokens = features.layers[-1]
        return tokens.mean(dim=2).view(len(tokens), 1, down, across).expand(-1, 3, -1, -1)


def test_a_name_is_seen_where_its_patches_are_like_its_text(encoder, source, tmp_path):
    found = compute_heat_maps(source, ZeroShot(encoder, NAMES), encoder, FeatureCache(tmp_path))
    paths, maps = found.paths, found.maps
    patches = encode_image_files(
        encoder.with_dense_image_size(), source.paths, kind="self_aware"
    ).features.patches
    scores = TextScorer(encoder, NAMES)(patches)
    assert paths == source.paths
    assert maps.shape == (3, 3, 8, 8)
    for row, name, y, x in [(0, 0, 0, 0), (1, 2, 3, 5), (2, 1, 7, 1)]:
        assert maps[row, name, y, x] == pytest.approx(scores[row, 8 * y + x, name].item(), abs=1e-2)


def test_a_method_that_looks_at_more_shows_what_its_texts_say_of_each_patch(
    encoder, source, tmp_path
):
    cache = FeatureCache(tmp_path)
    plain = compute_heat_maps(source, ZeroShot(encoder, NAMES), encoder, cache)
    found = compute_heat_maps(source, OfAttention(encoder), encoder, cache)
    np.testing.assert_allclose(found.maps, plain.maps, atol=1e-4)


def test_a_method_with_heat_maps_returns_these(encoder, source, tmp_path):
    maps = compute_heat_maps(source, WithMaps(), encoder, FeatureCache(tmp_path)).maps
    tokens = encode_image_files(
        encoder.with_image_size(160), source.paths, kind="trunk"
    ).features.layers[-1]
    assert maps.shape == (3, 3, 5, 5)
    np.testing.assert_allclose(maps[:, 0].reshape(3, 25), tokens.mean(dim=2), atol=1e-3)


def test_paths_are_those_that_could_be_read(encoder, source, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    Image.new("RGB", (1, 1)).save(tmp_path / "tiny.png")
    given = Images([str(tmp_path / "bad.jpg"), str(tmp_path / "tiny.png"), *source.paths])
    for method in (ZeroShot(encoder, NAMES), WithMaps()):
        found = compute_heat_maps(given, method, encoder, FeatureCache(tmp_path / "cache"))
        assert found.paths == given.paths[1:]
        assert np.isfinite(found.maps).all()


def test_an_encoder_without_patches_says_so(source, tmp_path):
    encoder = load_encoder("timm:test_resnet", pretrained=False)
    with pytest.raises(ConfigError, match="requires patch features in the joint space"):
        compute_heat_maps(
            source, OfAttention(load_encoder("tiny-rn")), encoder, FeatureCache(tmp_path)
        )


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
    text = encode_with_synonyms(vit, ["ship|boat"], ["a photo of a {}."])[0]
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
        UnknownName, match=r"got 'zebra' for .* Use one of its 4 labels, such as 'lion'"
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
    found = evaluate(made("dense_regions"), test)
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
        check_can_localize(recognizer)
