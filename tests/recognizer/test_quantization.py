from dataclasses import replace

import numpy as np
import pytest

from surelabel.config import Choice, Run
from surelabel.data import collection
from surelabel.encoders.engines.conversion import import_engine_package
from surelabel.encoders.quantized.quantized_model import QuantizedModel
from surelabel.errors import ConfigError, InputError
from surelabel.package_imports import import_without_telemetry
from surelabel.recognizer import Recognizer, quantization
from surelabel.recognizer.quantization import quantize_recognizer
from surelabel.recognizer.quantization_record import quantization_record
from surelabel.records import LabelledFeatures

NAMES = ["lion", "coffee", "guitar", "rocket"]


@pytest.fixture(scope="module")
def images():
    test = collection("scenes-80", split="test")
    columns = [list(test.names).index(name) for name in NAMES]
    rows = test.targets[:, columns].any(axis=1).nonzero()[0][:24]
    return test.take(rows)


@pytest.fixture
def recognizer(random_encoder, tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path))
    run = Run(encoder=Choice("random"), method=Choice("tiles"), seed=3)
    return Recognizer(run, NAMES, encoder=random_encoder)


@pytest.fixture
def quantized_kinds(monkeypatch, tmp_path):
    """Replace the quantization by a model whose vectors are sums of pixels; return its calls."""
    calls = []

    def model_of_pixels(encoder, kind, pixels):
        calls.append((kind, pixels))
        openvino = import_engine_package("openvino")
        opset = import_without_telemetry("openvino.opset13")
        inputs = opset.parameter([-1, 3, 32, 32], np.float32, name="pixels")
        inputs.output(0).set_names({"pixels"})
        flat = opset.reshape(inputs, np.array([0, 3072]), True)
        weights = np.random.default_rng(0).normal(size=(3072, 24)).astype(np.float32)
        vectors = opset.normalize_l2(opset.matmul(flat, weights, False, False), [1], 1e-9, "add")
        vectors.output(0).set_names({"output_0"})
        files = [tmp_path / "model.xml", tmp_path / "model.bin"]
        openvino.serialize(openvino.Model([vectors], [inputs]), *files)
        return QuantizedModel(kind, (32, 32), *(file.read_bytes() for file in files))

    monkeypatch.setattr(quantization, "quantize_features", model_of_pixels)
    return calls


def test_a_large_loss_of_map_is_refused_with_both_values(
    recognizer, images, quantized_kinds, monkeypatch
):
    monkeypatch.setattr(quantization, "MAX_MAP_LOSS", -1.0)  # which no model can reach
    before = recognizer.fingerprint
    with pytest.raises(ConfigError, match=r"it is 0\.\d{4} before and 0\.\d{4} after .*24 images"):
        quantize_recognizer(recognizer, images)
    assert recognizer.fingerprint == before
    assert recognizer.calibrated_on is None


def test_the_recognizer_is_calibrated_on_scores_of_the_new_encoder(
    recognizer, images, quantized_kinds, monkeypatch
):
    monkeypatch.setattr(quantization, "MAX_MAP_LOSS", 1.0)
    quantized = quantize_recognizer(recognizer, images)
    assert recognizer.calibrated_on is None
    assert quantized.calibrated_on.endswith("on 24 labelled images")
    assert quantized.fingerprint != recognizer.fingerprint
    record = quantization_record(quantized.encoder)
    assert (record.n_images, record.n_test_images) == (24, 24)
    assert f"{record.map_before:.4f} before and {record.map_after:.4f} after" in record.description
    assert quantization_record(recognizer.encoder) is None
    scores = [r.predict(images).scores for r in (recognizer, quantized)]
    assert not np.allclose(*scores)
    ((kind, pixels),) = quantized_kinds
    assert (kind, pixels.shape) == ("images", (24, 3, 32, 32))
    for use in (quantized.fit, lambda images: quantized.with_engine("torch", "auto")):
        with pytest.raises(ConfigError, match="quantized to int8"):
            use(images)
    assert quantized.with_engine("openvino", "int8").fingerprint == quantized.fingerprint


def test_random_images_are_chosen_by_the_seed(recognizer, images, quantized_kinds, monkeypatch):
    monkeypatch.setattr(quantization, "MAX_MAP_LOSS", 1.0)
    monkeypatch.setattr(quantization, "MAX_IMAGES", 5)
    recognizers = [
        recognizer,
        recognizer,
        Recognizer(replace(recognizer.run, seed=4), NAMES, encoder=recognizer.encoder),
    ]
    for each in recognizers:
        quantize_recognizer(each, images)
    first, second, third = (pixels for _, pixels in quantized_kinds)
    assert len(first) == 5
    assert first.equal(second)
    assert not first.equal(third)


def test_vectors_are_refused(recognizer):
    vectors = LabelledFeatures(np.eye(2, 24), NAMES, np.eye(2, 4))
    with pytest.raises(InputError, match="requires image files; got LabelledFeatures"):
        quantize_recognizer(recognizer, vectors)


def test_other_engines_are_refused(recognizer, images):
    with pytest.raises(ConfigError, match=r"engine torch; got random with onnx fp32"):
        quantize_recognizer(recognizer.with_engine("onnx"), images)
