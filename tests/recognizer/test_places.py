import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.backbones import load_backbone
from surelabel.data import FeatureCache, collection
from surelabel.encoding import encode
from surelabel.errors import ConfigError
from surelabel.methods import Wording, ZeroShot
from surelabel.recognizer.places import places
from surelabel.records import Images

NAMES = ["lion", "guitar", "pizza"]


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-rn")


@pytest.fixture(scope="module")
def source():
    return Images(list(collection("scenes-80", split="test").paths[:3]))


class OfAttention(torch.nn.Module):
    """Needs more than vectors, and says what vectors are compared with."""

    needs, side = ("attention",), None

    def __init__(self, backbone):
        super().__init__()
        self.wording = Wording(backbone, NAMES)

    def forward(self, features):
        assert features.attention is not None
        return self.wording(features.patches).amax(dim=1)


class WithMaps(torch.nn.Module):
    """Has maps of its own."""

    needs, side = ("trunk",), 160

    def maps(self, features):
        down, across = features.grid
        tokens = features.layers[-1]
        return tokens.mean(dim=2).view(len(tokens), 1, down, across).expand(-1, 3, -1, -1)


def test_a_name_is_seen_where_its_patches_are_like_its_text(backbone, source, tmp_path):
    found = places(source, ZeroShot(backbone, NAMES), backbone, FeatureCache(tmp_path))
    paths, maps = found.paths, found.maps
    patches = encode(backbone.dense(), source.paths, part="self_aware").features.patches
    scores = Wording(backbone, NAMES)(patches)
    assert paths == source.paths
    assert maps.shape == (3, 3, 8, 8)
    for row, name, y, x in [(0, 0, 0, 0), (1, 2, 3, 5), (2, 1, 7, 1)]:
        assert maps[row, name, y, x] == pytest.approx(scores[row, 8 * y + x, name].item(), abs=1e-2)


def test_a_method_that_looks_at_more_shows_what_its_texts_say_of_each_patch(
    backbone, source, tmp_path
):
    cache = FeatureCache(tmp_path)
    plain = places(source, ZeroShot(backbone, NAMES), backbone, cache)
    found = places(source, OfAttention(backbone), backbone, cache)
    np.testing.assert_allclose(found.maps, plain.maps, atol=1e-4)


def test_a_method_with_maps_of_its_own_shows_these(backbone, source, tmp_path):
    maps = places(source, WithMaps(), backbone, FeatureCache(tmp_path)).maps
    tokens = encode(backbone.at(160), source.paths, part="trunk").features.layers[-1]
    assert maps.shape == (3, 3, 5, 5)
    np.testing.assert_allclose(maps[:, 0].reshape(3, 25), tokens.mean(dim=2), atol=1e-3)


def test_paths_are_those_that_could_be_read(backbone, source, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    Image.new("RGB", (1, 1)).save(tmp_path / "tiny.png")
    given = Images([str(tmp_path / "bad.jpg"), str(tmp_path / "tiny.png"), *source.paths])
    for method in (ZeroShot(backbone, NAMES), WithMaps()):
        found = places(given, method, backbone, FeatureCache(tmp_path / "cache"))
        assert found.paths == given.paths[1:]
        assert np.isfinite(found.maps).all()


def test_an_encoder_without_patches_says_so(source, tmp_path):
    encoder = load_backbone("timm:test_resnet", pretrained=False)
    with pytest.raises(ConfigError, match="gives no patch vectors in the joint space"):
        places(source, OfAttention(load_backbone("tiny-rn")), encoder, FeatureCache(tmp_path))
