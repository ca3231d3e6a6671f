import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from surelabel.calibration import Platt
from surelabel.errors import DataError


@pytest.mark.parametrize(("slope", "shift"), [(0.3, -2.0), (1.0, 0.0), (25.0, -4.0)])
def test_finds_the_line_that_made_the_data(slope, shift):
    rng = np.random.default_rng(0)
    truth = 2 * rng.normal(size=(20000, 4)) - 1
    targets = rng.random(truth.shape) < expit(truth)
    fitted = Platt().fit((truth - shift) / slope, targets)
    assert fitted.slope_ == pytest.approx(slope, rel=0.03)
    assert fitted.shift_ == pytest.approx(shift, abs=0.05)


def test_equals_logistic_regression_on_smoothed_targets():
    rng = np.random.default_rng(1)
    x = 0.03 * rng.normal(size=(200, 1)) + 0.2
    y = rng.random(x.shape) < expit(60 * (x - 0.22))
    present, absent = y.sum(), (~y).sum()
    soft = np.where(y, (present + 1) / (present + 2), 1 / (absent + 2))
    twice, weight = np.vstack([x, x]) * 100, np.concatenate([soft, 1 - soft])[:, 0]
    oracle = LogisticRegression(C=np.inf, tol=1e-10).fit(twice, [1] * 200 + [0] * 200, weight)
    fitted = Platt().fit(x, y)
    assert fitted.slope_ == pytest.approx(100 * oracle.coef_[0, 0], rel=1e-4)
    assert fitted.shift_ == pytest.approx(oracle.intercept_[0], rel=1e-4)


def test_the_mean_probability_is_the_smoothed_share_of_present_labels():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(100, 3))
    y = rng.random(x.shape) < 0.1 + 0.2 * (x > 0)
    present, absent = y.sum(), (~y).sum()
    share = (y * (present + 1) / (present + 2) + ~y / (absent + 2)).mean()
    assert Platt().fit(x, y).predict_proba(x).mean() == pytest.approx(share, rel=1e-6)


def test_decisions_that_are_all_right_still_get_a_finite_line():
    fitted = Platt().fit([[-2.0, -1.0, 1.0, 2.0]], [[0, 0, 1, 1]])
    assert 0.5 < fitted.slope_ < 10
    np.testing.assert_allclose(fitted.predict_proba([[-9.0, 9.0]]), [[0, 1]], atol=0.01)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_order_is_kept_where_the_data_would_turn_it_round(scale):
    fitted = Platt().fit(scale * np.array([[-2.0, -1.0, 1.0, 2.0]]), [[1, 1, 0, 0]])
    assert fitted.slope_ > 0
    probabilities = fitted.predict_proba(scale * np.array([[-2.0, 2.0]]))[0]
    assert probabilities[0] < probabilities[1]
    np.testing.assert_allclose(probabilities, 0.5, atol=0.01)


@pytest.mark.parametrize("same", [0.0, -0.1, 7.0])
def test_scores_that_are_all_the_same_get_the_smoothed_prevalence(same):
    fitted = Platt().fit(np.full((4, 1), same), [[1], [0], [0], [0]])
    smoothed = (2 / 3 + 3 / 5) / 4
    assert fitted.slope_ == 1
    assert fitted.logits([[same]])[0, 0] == pytest.approx(logit(smoothed))


@pytest.mark.parametrize(("scale", "start"), [(1e-3, 5.0), (1e3, -1e5)])
def test_stretching_and_shifting_the_scores_changes_nothing(scale, start):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(80, 2)), rng.integers(0, 2, (80, 2))
    moved = scale * x + start
    found, expected = Platt().fit(moved, y).logits(moved), Platt().fit(x, y).logits(x)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_saved_slope_must_be_above_zero():
    with pytest.raises(DataError, match=r"above 0; got 0"):
        Platt().restore({"slope": 0.0, "shift": 1.0})


def test_a_fit_over_several_blocks_has_no_gradient_of_the_log_loss():
    rng = np.random.default_rng(0)
    x = 2 * rng.normal(size=80_001) - 3
    y = (rng.random(x.shape) < expit(0.7 * x + 1)).astype(float)
    fitted = Platt().fit(x[:, None], y[:, None])
    low, high = 1 / (len(y) - y.sum() + 2), (y.sum() + 1) / (y.sum() + 2)
    residual = expit(fitted.slope_ * x + fitted.shift_) - (low + (high - low) * y)
    np.testing.assert_allclose([residual.mean(), (residual * x).mean()], 0, atol=1e-6)
