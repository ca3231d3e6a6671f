import numpy as np
import pytest
from scipy.special import logit

import surelabel as sl
from surelabel.encoders.engines import engine_encoder
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.recognizer import dtype_check
from surelabel.recognizer.dtype_check import (
    DtypeCheck,
    compare_dtypes,
    dtype_checks_as_json,
    restore_dtype_checks,
    rows_of_dtype_check,
)
from surelabel.records import Predictions

PASSED = DtypeCheck("torch", "bf16", 20, 0.01, 0.004, 0.0005, 0.9999, "a.jpg")


@pytest.fixture
def with_bf16(monkeypatch):
    for module in (engine_encoder, dtype_check):
        monkeypatch.setattr(module, "has_bf16_instructions", lambda device: True)


@pytest.fixture(scope="module")
def held_out():
    return sl.collection("scenes-80", split="validation").take(range(12))


@pytest.fixture
def recognizer(held_out):
    return sl.Recognizer.zero_shot("tiny-vit", held_out.names)


def predictions(probabilities, vectors):
    logits = logit(np.array(probabilities)).astype(np.float32)
    vectors = np.array(vectors, dtype=np.float16)
    return Predictions(["a.jpg", "b.jpg"], ["x", "y"], logits, logits, "test", features=vectors)


def test_changes_are_those_computed_by_hand():
    expected = predictions([[0.5, 0.2], [0.9, 0.4]], [[3.0, 0.0], [0.0, 2.0]])
    changed = predictions([[0.52, 0.2], [0.89, 0.4]], [[1.0, 0.0], [0.75, 1.0]])
    targets, known = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[True, True], [True, False]])
    check = compare_dtypes("torch", "bf16", expected, changed, targets, known)
    before = -np.log([0.5, 0.8, 0.9]).mean()
    after = -np.log([0.52, 0.8, 0.89]).mean()
    assert check.n_images == 2
    assert check.max_change == pytest.approx(0.02)
    assert check.change_99 == pytest.approx(np.quantile([0.02, 0, 0.01, 0], 0.99))
    assert check.log_loss_rise == pytest.approx(after / before - 1)
    assert (check.min_cosine, check.worst_image) == (pytest.approx(0.8), "b.jpg")
    assert "lowest cosine of the vectors of an image is 0.800000 (b.jpg)" in check.description


@pytest.mark.parametrize(
    ("changes", "passes"),
    [
        ((0.02, 0.005, 0.001, 0.9999), True),
        ((0.0201, 0.005, 0.001, 0.9999), False),
        ((0.02, 0.0051, 0.001, 0.9999), False),
        ((0.02, 0.005, 0.0011, 0.9999), False),
        ((0.02, 0.005, 0.001, 0.99989), False),
        ((0.0, 0.0, -1.0, 1.0), True),
    ],
)
def test_each_limit_decides(changes, passes):
    check = DtypeCheck("torch", "bf16", 3, *changes, "a.jpg")
    assert check.passes == passes
    assert ("changes are within the limits" in check.description) == passes


def test_at_most_a_thousand_images_at_equal_distances_are_used():
    assert rows_of_dtype_check(3) == [0, 1, 2]
    assert rows_of_dtype_check(1000) == list(range(1000))
    assert rows_of_dtype_check(2001) == list(range(0, 2001, 3))


@pytest.mark.usefixtures("with_bf16")
def test_a_check_is_saved_and_decides_about_auto(recognizer, held_out, tmp_path):
    with pytest.warns(UserWarning, match="no check of bf16 with torch"):
        assert recognizer.with_engine(dtype="auto").encoder.engine.dtype == "fp32"
    check = recognizer.check_dtype(held_out)
    assert check.n_images == 12
    assert 0 < check.max_change < 0.1
    recognizer.dtype_checks = (PASSED,)
    recognizer.save(tmp_path / "saved")
    loaded = sl.Recognizer.load(tmp_path / "saved")
    assert loaded.dtype_checks == (PASSED,)
    assert loaded.with_engine(dtype="auto").encoder.engine.description == "torch bf16"
    assert PASSED.description in (tmp_path / "saved" / "README.md").read_text()
    with pytest.warns(UserWarning, match="no check of bf16 with openvino"):
        assert loaded.with_engine("openvino", "auto").encoder.engine.dtype == "fp32"
    with pytest.warns(UserWarning, match="onnx does not support bf16"):
        assert loaded.with_engine("onnx", "auto").encoder.engine.dtype == "fp32"
    (tmp_path / "saved" / "dtype_checks.json").write_text('{"checks": []}')
    with pytest.raises(DataError, match=r"dtype_checks\.json must"):
        sl.Recognizer.load(tmp_path / "saved")


@pytest.mark.usefixtures("with_bf16")
def test_a_check_that_failed_means_fp32(recognizer):
    recognizer.dtype_checks = (DtypeCheck("torch", "bf16", 20, 0.03, 0.004, 0.0, 1.0, "a.jpg"),)
    with pytest.warns(UserWarning, match="the check failed: torch bf16 on 20 images"):
        assert recognizer.with_engine(dtype="auto").encoder.engine.dtype == "fp32"


def test_a_processor_without_bf16_means_fp32(recognizer, monkeypatch):
    monkeypatch.setattr(dtype_check, "has_bf16_instructions", lambda device: False)
    recognizer.dtype_checks = (PASSED,)
    with pytest.warns(UserWarning, match="cpu has no instructions for bf16"):
        assert recognizer.with_engine(dtype="auto").encoder.engine.dtype == "fp32"


def test_another_calibration_removes_the_checks(recognizer, held_out):
    recognizer.dtype_checks = (PASSED,)
    recognizer.calibrate(held_out)
    assert recognizer.dtype_checks == ()


def test_images_without_labels_and_engines_without_bf16_are_refused(recognizer, held_out):
    with pytest.raises(InputError, match="check_dtype requires annotated images"):
        recognizer.check_dtype(held_out.paths)
    calls = []
    with pytest.raises(ConfigError, match="onnx supports fp32"):
        recognizer.check_dtype(held_out, engine="onnx", progress=lambda *done: calls.append(done))
    assert not calls  # before images are encoded


def test_checks_are_restored_from_json_and_other_json_is_refused():
    assert restore_dtype_checks(dtype_checks_as_json([PASSED])) == (PASSED,)
    valid = dtype_checks_as_json([PASSED])["checks"][0]
    for bad in (
        {},
        {"checks": 3},
        {"checks": [{}]},
        {"checks": [valid | {"other": 1}]},
        {"checks": [valid | {"max_change": float("nan")}]},
        {"checks": [valid | {"n_images": "20"}]},
        {"checks": [valid | {"engine": 1}]},
    ):
        with pytest.raises(DataError, match=r"dtype_checks\.json"):
            restore_dtype_checks(bad)
