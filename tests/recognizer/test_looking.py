import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.backbones import load_backbone
from surelabel.data import FeatureCache, collection
from surelabel.encoding import encode, encode_views
from surelabel.errors import ConfigError, DataError
from surelabel.recognizer.fitness import check_patches
from surelabel.recognizer.looking import looked_at, parts_for, parts_of
from surelabel.recognizer.sources import encoded, of_pictures
from surelabel.records import Images, LabelledFeatures
from surelabel.training import taken
from surelabel.views import Crops, Regions, Tiles


class Asking:
    """A method that needs certain parts and asks for certain cuts, one after another."""

    def __init__(self, *needs, cuts=(), side=None, between=None):
        self.needs, self.side = needs, side
        self._cuts, self._between = list(cuts), between

    def cut(self, features):
        if self._between:
            self._between(features)
        return self._cuts.pop(0) if self._cuts else None


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-rn")


@pytest.fixture
def paths(tmp_path):
    """Copies, so that they can be lost."""
    given = collection("scenes-80", split="test").paths[:4]
    return [str(shutil.copy(path, tmp_path / f"{i}.jpg")) for i, path in enumerate(given)]


def test_a_method_of_whole_pictures_gets_their_vectors_alone(backbone, paths):
    found = looked_at(paths, Asking(), backbone)
    assert torch.equal(found.features.pooled, encode(backbone, paths).features.pooled)
    assert found.features.views is None
    assert found.passes.tolist() == [1] * 4


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
    assert parts_for(needs) == parts


def test_a_ladder_is_named_by_its_methods_blocks(paths):
    method, encoder = Asking("ladder"), load_backbone("tiny-vit")
    method.ladder = (1, 2)
    assert parts_of(method) == ["ladder/1/2"]
    features = looked_at(paths, method, encoder).features
    wanted = encode(encoder, paths, part="ladder/1/2").features
    assert torch.equal(features.beside, wanted.beside)
    assert torch.equal(features.layers[-3], wanted.layers[-3])
    more = Asking("ladder", "self_aware")
    more.ladder = (0, 3)
    assert parts_of(more) == ["self_aware", "ladder/0/3"]
    assert looked_at(paths, more, encoder).features.patches.shape == (4, 64, 128)
    assert parts_of(Asking()) == ["images"]


def test_parts_of_several_passes_come_together(backbone, paths):
    found = looked_at(paths, Asking("attention", "patches", "trunk"), backbone)
    features = found.features
    for part, name in (("patches", "patches"), ("attentive", "attention")):
        wanted = getattr(encode(backbone, paths, part=part).features, name)
        assert torch.equal(getattr(features, name), wanted)
    trunk = encode(backbone, paths, part="trunk").features.layers[-1]
    assert torch.equal(features.layers[-1], trunk)
    assert features.grid == (3, 3)
    assert found.passes.tolist() == [3] * 4


def test_the_whole_is_seen_at_the_methods_side_and_its_parts_at_the_encoders_own(backbone, paths):
    method = Asking("patches", "views", cuts=[Tiles(1, 2)], side=160)
    features = looked_at(paths, method, backbone).features
    large = encode(backbone.at(160), paths, part="patches").features
    assert features.grid == (5, 5)
    assert torch.equal(features.pooled, large.pooled)
    assert torch.equal(features.views, encode_views(backbone, paths, Tiles(1, 2)).views)


def test_a_method_is_asked_until_it_wants_no_more(backbone, paths):
    seen = []
    method = Asking(
        "views",
        cuts=[Crops(count=2), Crops(count=3, first=2)],
        between=lambda f: seen.append(0 if f.views is None else f.views.shape[1]),
    )
    found = looked_at(paths, method, backbone)
    assert seen == [0, 2, 5]
    wanted = encode_views(backbone, paths, Crops(count=5)).views
    torch.testing.assert_close(found.features.views, wanted, atol=1e-3, rtol=0)
    assert found.passes.tolist() == [6] * 4


def test_where_a_picture_has_fewer_parts_its_own_vector_stands_in(backbone, paths):
    cuts = [None, Regions([(0, 0, 0.5, 1)]), Tiles(1, 2), None]
    found = looked_at(paths, Asking("views", cuts=[cuts, [None] * 4]), backbone)
    pooled, views = found.features.pooled, found.features.views
    assert found.passes.tolist() == [1, 2, 3, 1]
    for row in (0, 3):
        assert torch.equal(views[row], pooled[[row, row]])
    assert torch.equal(views[1, 1], pooled[1])
    assert not torch.equal(views[1, 0], pooled[1])
    alone = encode_views(backbone, [paths[2]], Tiles(1, 2)).views[0]
    torch.testing.assert_close(views[2], alone, atol=1e-3, rtol=0)


def test_a_method_that_wants_nothing_for_ever_is_not_asked_for_ever(backbone, paths):
    method = Asking("views")
    method.cut = lambda features: [None] * len(features.pooled)
    assert looked_at(paths, method, backbone).features.views is None


def test_a_file_that_is_lost_between_two_looks_is_left_out_and_named(backbone, paths, tmp_path):
    def lose(features):
        (tmp_path / "1.jpg").unlink(missing_ok=True)
        Image.new("RGB", (9, 9)).save(tmp_path / "2.jpg")

    method = Asking("views", cuts=[Tiles(1, 2), Tiles(2, 1)], between=lose)
    found = looked_at(paths, method, backbone)
    assert found.rows.tolist() == [0, 3]
    assert {s.path: s.reason for s in found.skipped} == {
        paths[1]: "no such file or directory",
        paths[2]: "changed while it was being read",
    }
    kept = [paths[0], paths[3]]
    assert torch.equal(found.features.pooled, encode(backbone, kept).features.pooled)
    wanted = [encode_views(backbone, kept, cut).views for cut in (Tiles(1, 2), Tiles(2, 1))]
    torch.testing.assert_close(found.features.views, torch.cat(wanted, 1), atol=1e-3, rtol=0)
    assert len(found.hashes) == len(found.passes) == 2


def test_a_file_that_changes_between_two_passes_is_left_out_too(backbone, paths):
    class Changing:
        def __getattr__(self, name):
            return getattr(backbone, name)

        def attentive(self, pixels):
            Image.new("RGB", (9, 9)).save(paths[1])
            return backbone.attentive(pixels)

    found = looked_at(paths, Asking("attention", "patches"), Changing())
    assert found.rows.tolist() == [0, 2, 3]
    assert [s.reason for s in found.skipped] == ["changed while it was being read"]
    kept = [paths[0], paths[2], paths[3]]
    assert torch.equal(
        found.features.patches, encode(backbone, kept, part="patches").features.patches
    )
    assert found.features.attention.shape == (3, 9, 9)


def test_with_strict_a_lost_file_is_an_error_and_so_is_losing_all(backbone, paths, tmp_path):
    def lose(features):
        for path in tmp_path.glob("*.jpg"):
            path.unlink()

    method = Asking("views", cuts=[Tiles(1, 2)], between=lose)
    with pytest.raises(DataError, match=r"0\.jpg: no such file or directory"):
        looked_at(paths[:1], method, backbone, strict=True)
    for path in collection("scenes-80", split="test").paths[:1]:
        shutil.copy(path, paths[0])
    method = Asking("views", cuts=[Tiles(1, 2)], between=lose)
    with pytest.raises(DataError, match="None of 1 pictures could be read again; the first"):
        looked_at(paths[:1], method, backbone)


def test_rows_of_pictures_and_of_their_views_stay_in_line(backbone, paths, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    given = [str(tmp_path / "bad.jpg"), *paths]
    source, cache = Images(given), FeatureCache(tmp_path / "cache")
    for cached in (0, 4):
        method = Asking("views", cuts=[Tiles(2, 1)])
        found = encoded(source, method, backbone, cache)
        assert found.rows.tolist() == [1, 2, 3, 4]
        assert found.cached == cached
        wanted = encode_views(backbone, paths, Tiles(2, 1)).views
        torch.testing.assert_close(found.features.views, wanted, atol=1e-3, rtol=0)
    method = Asking("views", cuts=[Tiles(1, 3)])
    assert encoded(source, method, backbone, cache).cached == 0


def test_ten_times_the_same_picture_and_one_of_a_pixel(backbone, paths, tmp_path):
    Image.new("RGB", (1, 1), "teal").save(tmp_path / "tiny.png")
    given = [*[paths[0]] * 10, str(tmp_path / "tiny.png")]
    found = looked_at(given, Asking("views", "attention", cuts=[Tiles()]), backbone)
    assert found.passes.tolist() == [10] * 11
    assert torch.equal(found.features.views[0], found.features.views[9])
    torch.testing.assert_close(found.features.views[10], found.features.pooled[[10] * 9])


def test_pictures_in_memory_are_looked_at_alike(backbone, paths):
    cuts = [[Tiles(1, 2), None, Tiles(2, 2), None]]
    files = looked_at(paths, Asking("views", "attention", cuts=cuts), backbone)
    cuts = [[Tiles(1, 2), None, Tiles(2, 2), None]]
    opened = [Image.open(path) for path in paths]
    memory = of_pictures(opened, Asking("views", "attention", cuts=cuts), backbone)
    for name in ("pooled", "patches", "attention", "views"):
        wanted, got = getattr(files.features, name), getattr(memory.features, name)
        torch.testing.assert_close(got, wanted, atol=2e-3, rtol=0)
    assert memory.passes.tolist() == files.passes.tolist() == [3, 1, 5, 1]


def test_all_parts_of_features_go_with_their_rows(backbone, paths):
    needs = ("views", "attention", "trunk")
    features = looked_at(paths, Asking(*needs, cuts=[Tiles(1, 2)]), backbone).features
    features = replace(features, pixels=torch.arange(4))
    some = taken(features, torch.tensor([2, 0]))
    for name in ("pooled", "patches", "attention", "views", "pixels"):
        assert torch.equal(getattr(some, name), getattr(features, name)[[2, 0]])
    assert torch.equal(some.layers[-1], features.layers[-1][[2, 0]])
    assert some.grid == features.grid


def test_vectors_have_nothing_to_look_into(backbone, tmp_path):
    rows = LabelledFeatures(np.ones((2, backbone.width)), (), np.zeros((2, 0)))
    cache = FeatureCache(tmp_path)
    with pytest.raises(ConfigError, match=r"looks into pictures \(views\), and ready-made vectors"):
        encoded(rows, Asking("views"), backbone, cache)
    assert encoded(rows, Asking("pixels"), backbone, cache).passes.tolist() == [0, 0]


class Named:
    """What of a run is said in messages."""

    class method:
        name = "crops"


def climbing():
    method = Asking("ladder")
    method.ladder = (0, 3)
    return method


@pytest.mark.parametrize(
    ("encoder", "settings", "method", "complaint"),
    [
        ("tiny-rn", {}, climbing(), "what enters the last blocks of a ViT, and tiny-rn gives none"),
        ("timm:test_vit", {"pretrained": False}, Asking("self_aware"), "self-aware patches, and t"),
        ("timm:test_vit", {"pretrained": False}, Asking("attention"), "the attention between"),
        ("timm:test_mambaout", {"pretrained": False}, Asking("trunk"), "the tokens of the trunk"),
        ("features:8", {}, Asking("trunk"), "the tokens of the trunk, and features:8 gives none"),
        ("features:8", {}, Asking("views"), "crops looks at parts of pictures, and features:8 ta"),
        ("features:8", {}, Asking(side=96), "features:8 takes ready-made vectors"),
        ("tiny-vit", {}, Asking(side=100), r"must be a multiple of 12 .* the nearest is 96"),
    ],
)
def test_what_the_encoder_cannot_show_is_told_before_a_picture_is_read(
    encoder, settings, method, complaint
):
    with pytest.raises(ConfigError, match=complaint):
        check_patches(Named, method, load_backbone(encoder, **settings))


def test_what_the_encoder_can_show_passes(backbone):
    needs = ("views", "patches", "attention", "trunk")
    other = load_backbone("timm:test_vit", pretrained=False)
    assert check_patches(Named, Asking(*needs, side=160), backbone) is None
    assert check_patches(Named, Asking("trunk"), other) is None
