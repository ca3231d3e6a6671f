import copy
import json
import pickle

import pytest
import torch

from surelabel.encoders import load_encoder
from surelabel.encoders.engines.engine_encoder import encoder_with_engine
from surelabel.encoders.loading.encoder_manifest import MANIFEST_FILE
from surelabel.encoders.quantized.quantized_encoder import (
    QuantizedEncoder,
    load_saved_quantized_encoder,
)
from surelabel.errors import ConfigError, DataError
from surelabel.features.feature_kinds import image_cache_fingerprint


@pytest.fixture
def folder(quantized, tmp_path):
    quantized.save(tmp_path / "saved")
    return tmp_path / "saved"


def test_only_features_of_images_change(quantized, random_encoder, pixels):
    assert torch.equal(quantized.encode_sentences(["a"]), random_encoder.encode_sentences(["a"]))
    vectors = quantized.encode_images(pixels).pooled
    assert vectors.shape == (20, 24)
    assert not torch.equal(vectors, random_encoder.encode_images(pixels).pooled)


def test_it_is_another_encoder(quantized, random_encoder):
    assert quantized.name == "random (int8)"
    assert quantized.engine.description == "openvino int8"
    assert quantized.fingerprint != random_encoder.fingerprint
    assert image_cache_fingerprint(quantized) != image_cache_fingerprint(random_encoder)


def test_other_features_and_sizes_are_refused(quantized, pixels):
    assert not quantized.supports("patches")
    assert not quantized.patch_kinds
    with pytest.raises(
        ConfigError, match=r"features 'patches' of random .int8. were not quantized"
    ):
        quantized.encode_patches(pixels)
    with pytest.raises(ConfigError, match="only for images of 32by32 pixels; got 64by64"):
        quantized.with_image_size(64)
    assert quantized.with_image_size(32) is quantized
    with pytest.raises(ConfigError, match="cannot be trained"):
        quantized.trainable_network()


def test_the_engine_is_fixed(quantized, random_encoder):
    assert encoder_with_engine(quantized, "openvino", "int8") is quantized
    for engine in (("torch",), ("openvino", "bf16"), ("onnx", "int8")):
        with pytest.raises(ConfigError, match="runs only with the engine openvino"):
            encoder_with_engine(quantized, *engine)
    with pytest.raises(ConfigError, match="surelabel calibrate MODEL DATASET --dtype int8 --out"):
        encoder_with_engine(random_encoder, "openvino", "int8")


def test_a_saved_encoder_computes_the_same(quantized, folder, pixels):
    loaded = load_encoder(f"local-dir:{folder}")
    assert loaded.fingerprint == quantized.fingerprint
    assert loaded.record == quantized.record
    expected = quantized.encode_images(pixels).pooled
    for other in (loaded, copy.copy(quantized), pickle.loads(pickle.dumps(quantized))):
        assert torch.equal(other.encode_images(pixels).pooled, expected)


@pytest.mark.parametrize("name", ["model_0.xml", "model_0.bin"])
def test_damaged_files_are_refused(folder, name):
    file = folder / name
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(DataError, match="fingerprint"):
        load_encoder(f"local-dir:{folder}")
    file.unlink()
    with pytest.raises(DataError, match=rf"{name} cannot be read.*calibrate again"):
        load_encoder(f"local-dir:{folder}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("quantized", None),
        ("quantized", [1]),
        ("quantized", [{"kind": "../images", "size": [32, 32]}]),
        ("quantized", [{"kind": [0, True], "size": [32, 32]}]),
        ("quantized", [{"kind": "images", "size": 32}]),
        ("record", 1),
        ("record", {"n_images": 1}),
        ("record", {"n_images": 1, "n_test_images": 1, "map_before": 1, "map_after": None}),
        ("record", {"n_images": "1", "n_test_images": 1, "map_before": 1, "map_after": 1}),
    ],
)
def test_invalid_manifests_are_refused(folder, key, value):
    file = folder / MANIFEST_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(DataError, match=f'The key "{key}" of the manifest'):
        load_encoder(f"local-dir:{folder}")


def test_a_quantized_original_is_refused(quantized, tmp_path):
    QuantizedEncoder(quantized, quantized.models).save(tmp_path / "twice")
    with pytest.raises(DataError, match="must contain an encoder that was not quantized"):
        load_encoder(f"local-dir:{tmp_path / 'twice'}")


def test_another_device_is_refused(folder):
    manifest = json.loads((folder / MANIFEST_FILE).read_text())
    with pytest.raises(ConfigError, match="device must be cpu"):
        load_saved_quantized_encoder(folder, manifest, "cuda", load_original=load_encoder)
