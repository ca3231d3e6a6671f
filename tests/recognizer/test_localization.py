import numpy as np
import pytest
from PIL import Image

from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.features import FeatureCache, encode_image_files
from surelabel.methods import TextScorer, ZeroShot
from surelabel.recognizer.localization import compute_localization_maps
from surelabel.records import Images

LABELS = ["lion", "ship|boat", "pizza", "guitar"]
NAMES = ["lion", "guitar", "pizza"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-rn")


@pytest.fixture(scope="module")
def source():
    return Images(list(collection("scenes-80", split="test").paths[:3]))


class WithMaps(ZeroShot):
    """Has its own heat maps."""

    needs, image_size = ("trunk",), 160

    def heat_maps(self, features):
        down, across = features.grid
        tokens = features.layers[-1]
        return tokens.mean(dim=2).view(len(tokens), 1, down, across).expand(-1, 3, -1, -1)


def test_a_name_is_seen_where_its_patches_are_like_its_text(encoder, source, tmp_path):
    found = compute_localization_maps(
        source, ZeroShot(encoder, NAMES), encoder, FeatureCache(tmp_path)
    )
    paths, maps = found.paths, found.maps
    patches = encode_image_files(
        encoder.with_dense_image_size(), source.paths, kind="self_aware"
    ).features.patches
    scores = TextScorer(encoder, NAMES)(patches)
    assert paths == source.paths
    assert maps.shape == (3, 3, 8, 8)
    for row, name, y, x in [(0, 0, 0, 0), (1, 2, 3, 5), (2, 1, 7, 1)]:
        assert maps[row, name, y, x] == pytest.approx(scores[row, 8 * y + x, name].item(), abs=1e-2)


def test_a_method_with_heat_maps_returns_these(encoder, source, tmp_path):
    maps = compute_localization_maps(
        source, WithMaps(encoder, NAMES), encoder, FeatureCache(tmp_path)
    ).maps
    tokens = encode_image_files(
        encoder.with_image_size(160), source.paths, kind="trunk"
    ).features.layers[-1]
    assert maps.shape == (3, 3, 5, 5)
    np.testing.assert_allclose(maps[:, 0].reshape(3, 25), tokens.mean(dim=2), atol=1e-3)


def test_paths_are_those_that_could_be_read(encoder, source, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    Image.new("RGB", (1, 1)).save(tmp_path / "tiny.png")
    given = Images([str(tmp_path / "bad.jpg"), str(tmp_path / "tiny.png"), *source.paths])
    for method in (ZeroShot(encoder, NAMES), WithMaps(encoder, NAMES)):
        found = compute_localization_maps(given, method, encoder, FeatureCache(tmp_path / "cache"))
        assert found.paths == given.paths[1:]
        assert np.isfinite(found.maps).all()


def test_an_encoder_without_patches_says_so(source, tmp_path):
    encoder = load_encoder("timm:test_resnet", pretrained=False)
    with pytest.raises(ConfigError, match="requires patch features in the joint space"):
        compute_localization_maps(
            source, ZeroShot(load_encoder("tiny-rn"), NAMES), encoder, FeatureCache(tmp_path)
        )
