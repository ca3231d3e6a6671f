import sys
from dataclasses import replace

import pytest
import torch

from surelabel.encoders.engines.feature_module import FeatureLayout
from surelabel.encoders.quantized.quantized_model import quantize_features
from surelabel.errors import DataError, MissingPart

POOLED = FeatureLayout(("pooled",), None)


def test_int8_vectors_are_close_to_those_of_fp32(random_encoder, quantized_model, pixels):
    expected = random_encoder.encode_images(pixels).pooled
    compiled = quantized_model.compile(POOLED)
    for n in (20, 1):
        (actual,) = compiled(pixels[:n])
        assert actual.shape == (n, 24)
        cosines = torch.cosine_similarity(actual, expected[:n])
        assert cosines.min() > 0.99
    assert not torch.allclose(compiled(pixels)[0], expected, atol=1e-4)


def test_weights_are_8_bit_integers(quantized_model, random_encoder):
    n_parameters = sum(p.numel() for p in random_encoder.model.visual.parameters())
    assert len(quantized_model.weights) < 2 * n_parameters
    assert b'element_type="i8"' in quantized_model.model


def test_the_fingerprint_depends_on_all_attributes(quantized_model):
    others = [
        replace(quantized_model, kind="patches"),
        replace(quantized_model, size=(32, 64)),
        replace(quantized_model, model=b"<net/>"),
        replace(quantized_model, weights=b"1"),
    ]
    fingerprints = {model.fingerprint for model in [quantized_model, *others]}
    assert len(fingerprints) == 5


def test_a_model_that_openvino_cannot_read_is_an_error(quantized_model):
    with pytest.raises(
        DataError, match=r"cannot read the int8 model of the features images\. Copy"
    ):
        replace(quantized_model, model=b"<net/>").compile(POOLED)


def test_a_missing_package_is_named(random_encoder, pixels, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingPart, match="package openvino"):
        quantize_features(random_encoder, "images", pixels)
