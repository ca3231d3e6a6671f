import re

import numpy as np
import pytest
import torch

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.evaluation.label_uncertainty import evaluate_label_uncertainty
from surelabel.methods import METHODS, Linear
from surelabel.recognizer import Recognizer, evaluate
from surelabel.recognizer.uncertainty import available_uncertainty_kinds, compute_uncertainty
from surelabel.records import UNCERTAINTY_KINDS, Features

NAMES = ["lion", "guitar", "car"]


class LinearWithUncertainty(Linear):
    """Linear head whose uncertainties are functions of its scores."""

    def residual_errors(self, features):
        return torch.sigmoid(-self(features).abs())

    def match_variances(self, features):
        return torch.exp(-self(features))


@pytest.fixture(scope="module")
def images():
    """Return twelve images, of which each label has one or more."""
    test = collection("scenes-80", split="test")
    columns = [list(test.names).index(name) for name in NAMES]
    return test.take([row for c in columns for row in test.targets[:, c].nonzero()[0][:4]])


@pytest.fixture(scope="module")
def zero_shot():
    return Recognizer.zero_shot("tiny-vit", NAMES)


@pytest.fixture
def fitted(monkeypatch, images):
    """A fitted recognizer whose method estimates uncertainty."""
    monkeypatch.setitem(METHODS, "linear_with_uncertainty", LinearWithUncertainty)
    run = load_run(overrides=["method.name=linear_with_uncertainty", "epochs=2"])
    return Recognizer(run, NAMES).fit(images)


def test_the_bernoulli_variance_is_one_at_one_half_and_zero_at_certainty():
    logits = np.array([[0.0, 40.0, -40.0, np.log(3)]], np.float32)
    values = compute_uncertainty("bernoulli_variance", None, None, logits)
    np.testing.assert_allclose(values, [[1.0, 0.0, 0.0, 4 * 0.75 * 0.25]], atol=1e-7)
    assert values.dtype == np.float32
    assert values[0, 1] == values[0, 2] > 0  # 1 - sigmoid(40) is 0 in float64


def test_a_calibrated_recognizer_predicts_the_bernoulli_variance(zero_shot, images):
    predictions = zero_shot.predict(images, uncertainty="bernoulli_variance")
    p = predictions.probabilities
    np.testing.assert_allclose(predictions.uncertainty, 4 * p * (1 - p), rtol=1e-5)
    assert predictions.uncertainty_kind == "bernoulli_variance"
    without = zero_shot.predict(images)
    assert (without.uncertainty, without.uncertainty_kind) == (None, None)
    np.testing.assert_array_equal(without.logits, predictions.logits)


@pytest.mark.parametrize("kind", UNCERTAINTY_KINDS[1:])
def test_a_learned_uncertainty_is_that_of_the_method(fitted, images, kind):
    predictions = fitted.predict(images, uncertainty=kind)
    scores = predictions.scores
    expected = 1 / (1 + np.exp(abs(scores))) if kind == "residual_error" else np.exp(-scores)
    np.testing.assert_allclose(predictions.uncertainty, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", UNCERTAINTY_KINDS)
def test_blocks_have_the_uncertainty_of_all_images_at_once(fitted, images, kind):
    whole = fitted.predict(images, uncertainty=kind)
    blocks = list(fitted.predict_blocks(images, block_size=5, uncertainty=kind))
    assert [len(block) for block in blocks] == [5, 5, 2]
    joined = np.concatenate([block.uncertainty for block in blocks])
    np.testing.assert_allclose(joined, whole.uncertainty, rtol=1e-5)


def test_a_block_without_a_readable_image_has_no_rows_of_uncertainty(fitted, images, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"")
    first, second = fitted.predict_blocks(
        [broken, images.paths[0]], block_size=1, uncertainty="match_variance"
    )
    assert (first.uncertainty.shape, second.uncertainty.shape) == ((0, 3), (1, 3))


def test_an_uncalibrated_recognizer_has_no_bernoulli_variance(images):
    run = load_run(overrides=["encoder.name=tiny-vit", "method.name=crops"])
    recognizer = Recognizer(run, NAMES)
    recognizer.calibration = None
    with pytest.raises(NotFitted, match="bernoulli_variance needs calibrated probabilities"):
        recognizer.predict(images, uncertainty="bernoulli_variance")


@pytest.mark.parametrize("kind", UNCERTAINTY_KINDS[1:])
def test_the_error_names_the_methods_with_an_uncertainty(monkeypatch, images, zero_shot, kind):
    monkeypatch.setitem(METHODS, "linear_with_uncertainty", LinearWithUncertainty)
    wanted = rf"{kind} needs a method that estimates .*linear_with_uncertainty.*; got zero_shot"
    with pytest.raises(ConfigError, match=wanted):
        zero_shot.predict(images, uncertainty=kind)


def test_an_unknown_kind_is_refused_before_an_image_is_read(zero_shot, tmp_path):
    (tmp_path / "broken.png").write_bytes(b"")
    with pytest.raises(InputError, match=re.escape(f"{', '.join(UNCERTAINTY_KINDS)}; got 'odd'")):
        zero_shot.predict_blocks(tmp_path, uncertainty="odd")


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_a_learned_uncertainty_that_is_no_variance_is_refused(fitted, images, value):
    fitted.method.match_variances = lambda features: torch.full((1, 3), value)
    with pytest.raises(InputError, match="match_variance must be finite and at least 0"):
        compute_uncertainty("match_variance", fitted.method, Features(torch.zeros(1, 4)), None)


def test_the_kinds_depend_on_method_and_calibration(fitted, zero_shot):
    assert available_uncertainty_kinds(fitted.method, is_calibrated=True) == [*UNCERTAINTY_KINDS]
    assert available_uncertainty_kinds(zero_shot.method, is_calibrated=True) == [
        "bernoulli_variance"
    ]
    assert available_uncertainty_kinds(zero_shot.method, is_calibrated=False) == []


def test_an_evaluation_has_the_errors_of_all_kinds_of_the_recognizer(fitted, images):
    found = evaluate(fitted, images).uncertainty
    assert [kind.kind for kind in found.kinds] == [*UNCERTAINTY_KINDS]
    expected = evaluate_label_uncertainty(
        fitted.predict(images).probabilities,
        (aligned := fitted.align_labels(images)).targets,
        aligned.known,
        fitted.predict(images, uncertainty="residual_error").uncertainty,
        kind="residual_error",
    )
    assert found.kinds[1].images.intervals == expected.images.intervals


def test_an_evaluation_of_scores_has_no_uncertainty(images):
    recognizer = Recognizer.zero_shot("tiny-vit", NAMES)
    recognizer.calibration = None
    assert evaluate(recognizer, images).uncertainty is None
