import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from surelabel.calibration import fit_scale_and_shift
from surelabel.errors import InputError
from surelabel.evaluation import evaluate_recalibration
from surelabel.metrics import ConfidenceInterval, ece, log_loss_of_logits


def sampled(n=40, c=20, level=-1.0, seed=0):
    random = np.random.default_rng(seed)
    z = random.normal(level, 2, size=(n, c))
    return z, (random.random((n, c)) < expit(z)).astype(float)


@pytest.fixture(scope="module")
def wrong():
    """Return log-odds with a wrong scale and shift, their targets and the recalibration."""
    z, y = sampled()
    return 2 * z + 1, y, evaluate_recalibration(2 * z + 1, y)


def test_miscalibrated_log_odds_are_improved(wrong):
    _, _, found = wrong
    assert found.is_improvement
    assert found.log_loss_change.high < 0
    assert found.sentence.startswith("The recalibration improves the probabilities. ")
    other_z, other_y = sampled(2000, seed=9)
    before = log_loss_of_logits(2 * other_z + 1, other_y)
    assert log_loss_of_logits(found.scale * (2 * other_z + 1) + found.shift, other_y) < before


def test_metrics_equal_those_of_the_metrics_package(wrong):
    z, y, found = wrong
    assert found.log_loss_before == pytest.approx(log_loss_of_logits(z, y))
    assert found.log_loss_after == pytest.approx(log_loss_of_logits(found.cross_fitted_logits, y))
    change = found.log_loss_after - found.log_loss_before
    assert found.log_loss_change.value == pytest.approx(change)
    assert found.ece_before.value == pytest.approx(ece(expit(z), y))
    assert found.ece_after.value == pytest.approx(ece(expit(found.cross_fitted_logits), y))
    assert found.ece_before.low < found.ece_before.value < found.ece_before.high
    assert found.noise_floor_after < found.ece_before.value
    assert (found.scale, found.shift) == fit_scale_and_shift(z, y)
    assert (found.n_images, found.n_targets) == (40, 800)


def test_the_correction_of_an_image_does_not_depend_on_its_targets(wrong):
    z, y, found = wrong
    changed = y.copy()
    changed[7] = 1 - changed[7]
    again = evaluate_recalibration(z, changed)
    np.testing.assert_array_equal(again.cross_fitted_logits[7], found.cross_fitted_logits[7])
    assert again.scale != found.scale


def test_calibrated_log_odds_are_kept():
    n_improvements = sum(
        evaluate_recalibration(*sampled(20, 5, -3.5, seed)).is_improvement for seed in range(60)
    )
    assert n_improvements <= 2
    sentence = evaluate_recalibration(*sampled(seed=1)).sentence
    assert sentence.startswith("There is no evidence of miscalibration, so the calibration is kept")


@pytest.mark.parametrize(
    ("p_value", "high", "beginning"),
    [
        (0.01, -0.1, "The recalibration improves the probabilities. "),
        (0.01, 0.1, "There is evidence of miscalibration, but no evidence that the recalibration "),
        (0.2, -0.1, "The recalibration improves the log loss of these images, but the test "),
        (0.2, 0.1, "There is no evidence of miscalibration, so the calibration is kept. "),
    ],
)
def test_the_sentence_states_the_test_and_the_interval(wrong, p_value, high, beginning):
    interval = ConfidenceInterval(-0.2, -0.3, high)
    found = replace(wrong[2], p_value=p_value, log_loss_change=interval)
    assert found.sentence.startswith(beginning)
    assert ("so the calibration is kept." in found.sentence) is not found.is_improvement


def test_a_difference_that_is_rounded_to_zero_has_no_sign(wrong):
    interval = ConfidenceInterval(-0.00001, -0.00005001, 0.00001)
    sentence = replace(wrong[2], log_loss_change=interval).sentence
    assert sentence.endswith("(difference 0.0000, 95 % interval -0.0001 to 0.0000).")


def test_too_few_positives_are_no_evidence():
    z, _ = sampled(20, 2, -3.5)
    found = evaluate_recalibration(z, np.zeros(z.shape))
    assert found.log_loss_change.high < 0
    assert not found.is_improvement


def test_dependent_labels_are_no_evidence():
    z, y = sampled(20, 10, -3.0, seed=1)
    found = evaluate_recalibration(np.repeat(z, 8, axis=1), np.repeat(y, 8, axis=1))
    assert found.p_value < 0.05
    assert found.log_loss_change.high > 0
    assert not found.is_improvement
    assert "There is no evidence of miscalibration" not in found.sentence


def test_images_without_targets_have_no_effect_on_the_metrics(wrong):
    z, y, found = wrong
    known = np.vstack([np.ones(y.shape, bool), np.zeros((5, y.shape[1]), bool)])
    more = evaluate_recalibration(np.vstack([z, z[:5]]), np.vstack([y, y[:5]]), known)
    assert (more.n_images, more.n_targets) == (40, 800)
    assert more.log_loss_before == pytest.approx(found.log_loss_before)
    assert more.cross_fitted_logits.shape == (45, 20)


def test_the_dictionary_is_finite_json(wrong):
    found = json.loads(json.dumps(wrong[2].as_dict()))
    assert found["is_improvement"] is True
    numbers = [found["scale"], found["shift"], *found["log_loss"].values(), *found["ece"].values()]
    assert all(math.isfinite(number) for number in numbers)
    assert found["log_loss"]["low"] < found["log_loss"]["change"] < found["log_loss"]["high"] < 0


def test_intervals_of_the_calibration_error_are_not_negative():
    found = evaluate_recalibration(*sampled(20, 3, seed=3))
    assert 0 <= found.ece_before.low <= found.ece_before.value


@pytest.mark.parametrize(("n", "missing"), [(19, "1 more image"), (3, "17 more images")])
def test_too_few_images_are_refused_with_the_missing_number(n, missing):
    with pytest.raises(InputError, match=f"requires at least 20 .*got {n}. Annotate {missing}."):
        evaluate_recalibration(*sampled(n, 3))
