import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, DataError
from surelabel.features import FeatureCache, encode_image_files, encode_views
from surelabel.methods import Crops, DenseRegions, RegionStatistics, Tiles, ZeroShot
from surelabel.recognizer.compatibility import check_encoder_method_compatibility
from surelabel.recognizer.feature_extraction import (
    extract_features,
    feature_extraction_kinds_for_needs,
    feature_extraction_kinds_of_method,
    max_encoder_passes,
)
from surelabel.recognizer.inputs import encode_recognizer_input
from surelabel.records import Images, LabelledFeatures
from surelabel.training import select_feature_batch_rows
from surelabel.views import CropLayout, RegionLayout, TileLayout


class Asking(ZeroShot):
    """A method that needs certain parts and asks for certain cuts, one after another."""

    def __init__(self, *needs, cuts=(), image_size=None, between=None):
        super().__init__(load_encoder("tiny-rn"), ["lion"])
        self.needs, self.image_size = needs, image_size
        self._cuts, self._between = list(cuts), between

    def next_views(self, features):
        if self._between:
            self._between(features)
        return self._cuts.pop(0) if self._cuts else None

    def view_scores(self, features):
        return self.text_scorer(features.views)


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-rn")


@pytest.fixture
def paths(tmp_path):
    """Copies, so that they can be lost."""
    given = collection("scenes-80", split="test").paths[:4]
    return [str(shutil.copy(path, tmp_path / f"{i}.jpg")) for i, path in enumerate(given)]


@pytest.mark.parametrize(
    ("method", "passes"),
    [
        (ZeroShot, 1),
        (Tiles, 14),
        (partial(Tiles, rows=2, columns=3, grids=1), 7),
        (partial(Crops, max_crops=7), 8),
        (DenseRegions, 6),
        (RegionStatistics, 2),
        (partial(RegionStatistics, image_size=96), 1),
    ],
)
def test_the_largest_number_of_encoder_passes_is_known_before_an_image_is_encoded(
    encoder, paths, method, passes
):
    made = method(encoder, ["lion", "guitar", "car", "bus", "cat", "dog"])
    assert max_encoder_passes(made) == passes
    assert extract_features(paths[:1], made, encoder).encoder_passes.tolist() == [passes]


def test_a_method_of_whole_images_gets_their_vectors_alone(encoder, paths):
    found = extract_features(paths, Asking(), encoder)
    assert torch.equal(found.features.pooled, encode_image_files(encoder, paths).features.pooled)
    assert found.features.views is None
    assert found.encoder_passes.tolist() == [1] * 4


@pytest.mark.parametrize(
    ("needs", "parts"),
    [
        ((), ["images"]),
        (("pixels",), ["images"]),
        (("views",), ["images"]),
        (("patches",), ["patches"]),
        (("self_aware", "attention", "views"), ["attentive"]),
        (("attention", "patches"), ["attentive", "patches"]),
        (("trunk", "self_aware"), ["trunk", "self_aware"]),
    ],
)
def test_each_part_is_a_pass_and_attention_comes_with_its_patches(needs, parts):
    assert feature_extraction_kinds_for_needs(needs) == parts


def test_a_ladder_is_named_by_its_methods_blocks(paths):
    method, encoder = Asking("ladder"), load_encoder("tiny-vit")
    method.ladder_blocks = (1, 2)
    assert feature_extraction_kinds_of_method(method) == ["ladder/1/2"]
    features = extract_features(paths, method, encoder).features
    wanted = encode_image_files(encoder, paths, kind="ladder/1/2").features
    assert torch.equal(features.self_aware_sum, wanted.self_aware_sum)
    assert torch.equal(features.layers[-3], wanted.layers[-3])
    more = Asking("ladder", "self_aware")
    more.ladder_blocks = (0, 3)
    assert feature_extraction_kinds_of_method(more) == ["self_aware", "ladder/0/3"]
    assert extract_features(paths, more, encoder).features.patches.shape == (4, 64, 128)
    assert feature_extraction_kinds_of_method(Asking()) == ["images"]


def test_parts_of_several_passes_come_together(encoder, paths):
    found = extract_features(paths, Asking("attention", "patches", "trunk"), encoder)
    features = found.features
    for part, name in (("patches", "patches"), ("attentive", "attention")):
        wanted = getattr(encode_image_files(encoder, paths, kind=part).features, name)
        assert torch.equal(getattr(features, name), wanted)
    trunk = encode_image_files(encoder, paths, kind="trunk").features.layers[-1]
    assert torch.equal(features.layers[-1], trunk)
    assert features.grid == (3, 3)
    assert found.encoder_passes.tolist() == [3] * 4


def test_times_of_all_passes_and_of_the_views_are_added_up(encoder, paths, timed):
    method = Asking("attention", "patches", "views", cuts=[TileLayout(1, 2), TileLayout(3, 1)])
    found = extract_features(paths, method, timed(encoder), workers=0)
    assert found.decode_seconds == 4 * (1 + 1 + 2 + 3) * 10
    assert found.model_seconds == 4 * 1000


@pytest.mark.parametrize(("first", "second"), [(3, 1), (1, 3), (4, 4)])
def test_an_image_is_cached_only_if_all_its_passes_are(encoder, paths, tmp_path, first, second):
    cache, method = FeatureCache(tmp_path / "cache"), Asking("attention", "patches")
    for kind, count in (("attentive", first), ("patches", second)):
        encode_image_files(encoder, paths[:count], kind=kind, cache=cache)
    assert extract_features(paths, method, encoder, cache=cache).n_cached == min(first, second)


def test_the_whole_is_seen_at_the_methods_side_and_its_parts_at_the_encoders_own(encoder, paths):
    method = Asking("patches", "views", cuts=[TileLayout(1, 2)], image_size=160)
    features = extract_features(paths, method, encoder).features
    large = encode_image_files(encoder.with_image_size(160), paths, kind="patches").features
    assert features.grid == (5, 5)
    assert torch.equal(features.pooled, large.pooled)
    assert torch.equal(features.views, encode_views(encoder, paths, TileLayout(1, 2)).views)


def test_a_method_is_asked_until_it_wants_no_more(encoder, paths):
    seen = []
    method = Asking(
        "views",
        cuts=[CropLayout(count=2), CropLayout(count=3, first=2)],
        between=lambda f: seen.append(0 if f.views is None else f.views.shape[1]),
    )
    found = extract_features(paths, method, encoder)
    assert seen == [0, 2, 5]
    wanted = encode_views(encoder, paths, CropLayout(count=5)).views
    torch.testing.assert_close(found.features.views, wanted, atol=1e-3, rtol=0)
    assert found.encoder_passes.tolist() == [6] * 4


def test_where_a_image_has_fewer_parts_its_own_vector_stands_in(encoder, paths):
    cuts = [None, RegionLayout([(0, 0, 0.5, 1)]), TileLayout(1, 2), None]
    found = extract_features(paths, Asking("views", cuts=[cuts, [None] * 4]), encoder)
    pooled, views = found.features.pooled, found.features.views
    assert found.encoder_passes.tolist() == [1, 2, 3, 1]
    for row in (0, 3):
        assert torch.equal(views[row], pooled[[row, row]])
    assert torch.equal(views[1, 1], pooled[1])
    assert not torch.equal(views[1, 0], pooled[1])
    alone = encode_views(encoder, [paths[2]], TileLayout(1, 2)).views[0]
    torch.testing.assert_close(views[2], alone, atol=1e-3, rtol=0)


def test_a_method_that_wants_nothing_for_ever_is_not_asked_for_ever(encoder, paths):
    method = Asking("views")
    method.next_views = lambda features: [None] * len(features.pooled)
    assert extract_features(paths, method, encoder).features.views is None


def test_a_file_that_is_lost_between_two_looks_is_left_out_and_named(encoder, paths, tmp_path):
    def lose(features):
        (tmp_path / "1.jpg").unlink(missing_ok=True)
        Image.new("RGB", (9, 9)).save(tmp_path / "2.jpg")

    method = Asking("views", cuts=[TileLayout(1, 2), TileLayout(2, 1)], between=lose)
    found = extract_features(paths, method, encoder)
    assert found.rows.tolist() == [0, 3]
    assert {s.path: s.reason for s in found.skipped} == {
        paths[1]: "no such file or directory",
        paths[2]: "changed while it was being read",
    }
    kept = [paths[0], paths[3]]
    assert torch.equal(found.features.pooled, encode_image_files(encoder, kept).features.pooled)
    wanted = [
        encode_views(encoder, kept, cut).views for cut in (TileLayout(1, 2), TileLayout(2, 1))
    ]
    torch.testing.assert_close(found.features.views, torch.cat(wanted, 1), atol=1e-3, rtol=0)
    assert len(found.hashes) == len(found.encoder_passes) == 2


def test_a_file_that_changes_between_two_passes_is_left_out_too(encoder, paths):
    class Changing:
        def __getattr__(self, name):
            return getattr(encoder, name)

        def encode_patches_with_attention(self, pixels):
            Image.new("RGB", (9, 9)).save(paths[1])
            return encoder.encode_patches_with_attention(pixels)

    found = extract_features(paths, Asking("attention", "patches"), Changing())
    assert found.rows.tolist() == [0, 2, 3]
    assert [s.reason for s in found.skipped] == ["changed while it was being read"]
    kept = [paths[0], paths[2], paths[3]]
    assert torch.equal(
        found.features.patches, encode_image_files(encoder, kept, kind="patches").features.patches
    )
    assert found.features.attention.shape == (3, 9, 9)


def test_with_strict_a_lost_file_is_an_error_and_so_is_losing_all(encoder, paths, tmp_path):
    def lose(features):
        for path in tmp_path.glob("*.jpg"):
            path.unlink()

    method = Asking("views", cuts=[TileLayout(1, 2)], between=lose)
    with pytest.raises(DataError, match=r"0\.jpg: no such file or directory"):
        extract_features(paths[:1], method, encoder, strict=True)
    for path in collection("scenes-80", split="test").paths[:1]:
        shutil.copy(path, paths[0])
    method = Asking("views", cuts=[TileLayout(1, 2)], between=lose)
    with pytest.raises(DataError, match="must read at least one of 1 image; no image was readable"):
        extract_features(paths[:1], method, encoder)


def test_rows_of_images_and_of_their_views_stay_in_line(encoder, paths, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    given = [str(tmp_path / "bad.jpg"), *paths]
    source, cache = Images(given), FeatureCache(tmp_path / "cache")
    for cached in (0, 4):
        method = Asking("views", cuts=[TileLayout(2, 1)])
        found = encode_recognizer_input(source, method, encoder, cache)
        assert found.rows.tolist() == [1, 2, 3, 4]
        assert found.n_cached == cached
        wanted = encode_views(encoder, paths, TileLayout(2, 1)).views
        torch.testing.assert_close(found.features.views, wanted, atol=1e-3, rtol=0)
    method = Asking("views", cuts=[TileLayout(1, 3)])
    assert encode_recognizer_input(source, method, encoder, cache).n_cached == 0


def test_ten_times_the_same_image_and_one_of_a_pixel(encoder, paths, tmp_path):
    Image.new("RGB", (1, 1), "teal").save(tmp_path / "tiny.png")
    given = [*[paths[0]] * 10, str(tmp_path / "tiny.png")]
    found = extract_features(given, Asking("views", "attention", cuts=[TileLayout()]), encoder)
    assert found.encoder_passes.tolist() == [10] * 11
    assert torch.equal(found.features.views[0], found.features.views[9])
    torch.testing.assert_close(found.features.views[10], found.features.pooled[[10] * 9])


def test_images_in_memory_are_looked_at_alike(encoder, paths):
    cuts = [[TileLayout(1, 2), None, TileLayout(2, 2), None]]
    files = extract_features(paths, Asking("views", "attention", cuts=cuts), encoder)
    cuts = [[TileLayout(1, 2), None, TileLayout(2, 2), None]]
    opened = [Image.open(path) for path in paths]
    memory = extract_features(opened, Asking("views", "attention", cuts=cuts), encoder)
    for name in ("pooled", "patches", "attention", "views"):
        wanted, got = getattr(files.features, name), getattr(memory.features, name)
        torch.testing.assert_close(got, wanted, atol=2e-3, rtol=0)
    assert memory.encoder_passes.tolist() == files.encoder_passes.tolist() == [3, 1, 5, 1]


def test_all_parts_of_features_go_with_their_rows(encoder, paths):
    needs = ("views", "attention", "trunk")
    features = extract_features(paths, Asking(*needs, cuts=[TileLayout(1, 2)]), encoder).features
    features = replace(features, pixels=torch.arange(4))
    some = select_feature_batch_rows(features, torch.tensor([2, 0]))
    for name in ("pooled", "patches", "attention", "views", "pixels"):
        assert torch.equal(getattr(some, name), getattr(features, name)[[2, 0]])
    assert torch.equal(some.layers[-1], features.layers[-1][[2, 0]])
    assert some.grid == features.grid


def test_vectors_have_nothing_to_look_into(encoder, tmp_path):
    rows = LabelledFeatures(np.ones((2, encoder.width)), (), np.zeros((2, 0)))
    cache = FeatureCache(tmp_path)
    with pytest.raises(ConfigError, match=r"requires images to compute views; got precomputed"):
        encode_recognizer_input(rows, Asking("views"), encoder, cache)
    assert encode_recognizer_input(
        rows, Asking("pixels"), encoder, cache
    ).encoder_passes.tolist() == [0, 0]


class Named:
    """What of a run is said in messages."""

    class method:
        name = "crops"


class Climbing(Asking):
    """A method that needs the last three blocks of a ViT."""

    ladder_blocks = (0, 3)


@pytest.mark.parametrize(
    ("encoder", "settings", "method", "complaint"),
    [
        (
            "tiny-rn",
            {},
            partial(Climbing, "ladder"),
            "features of the last ViT blocks; tiny-rn does not",
        ),
        (
            "timm:test_vit",
            {"pretrained": False},
            partial(Asking, "self_aware"),
            "self-aware patch features; t",
        ),
        (
            "timm:test_vit",
            {"pretrained": False},
            partial(Asking, "attention"),
            "patch features with attention",
        ),
        ("features:8", {}, partial(Asking, "trunk"), "trunk tokens; features:8 does not"),
        (
            "features:8",
            {},
            partial(Asking, "views"),
            "crops encodes views of images; features:8 accepts no",
        ),
        (
            "features:8",
            {},
            partial(Asking, image_size=96),
            "features:8 needs precomputed features",
        ),
        (
            "tiny-vit",
            {},
            partial(Asking, image_size=100),
            r"must be a multiple of 12 .* The nearest multiple is 96",
        ),
    ],
)
def test_what_the_encoder_cannot_show_is_told_before_a_image_is_read(
    encoder, settings, method, complaint
):
    with pytest.raises(ConfigError, match=complaint):
        check_encoder_method_compatibility(Named, method(), load_encoder(encoder, **settings))


def test_what_the_encoder_can_show_passes(encoder):
    needs = ("views", "patches", "attention", "trunk")
    other = load_encoder("timm:test_vit", pretrained=False)
    assert (
        check_encoder_method_compatibility(Named, Asking(*needs, image_size=160), encoder) is None
    )
    assert check_encoder_method_compatibility(Named, Asking("trunk"), other) is None
