import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from surelabel.calibration import Platt, Vector
from surelabel.errors import ConfigError, DataError
from surelabel.metrics import log_loss_of_logits


@pytest.fixture
def differing():
    """Labels of their own slope and intercept, some rare."""
    rng = np.random.default_rng(0)
    slopes, levels = np.array([0.5, 1.0, 2.0, 1.0]), np.array([-2.0, 0.0, 1.0, -4.0])
    x = 2 * rng.normal(size=(3000, 4))
    truth = slopes * x + levels
    return x, (rng.random(x.shape) < expit(truth)).astype(float), truth


def test_finds_the_line_of_every_label(differing):
    x, y, truth = differing
    found = Vector(shrinkage=1e-6).fit(x, y)
    np.testing.assert_allclose(found.slopes_, [0.5, 1.0, 2.0, 1.0], rtol=0.15)
    np.testing.assert_allclose(found.shifts_, [-2.0, 0.0, 1.0, -4.0], atol=0.25)
    assert log_loss_of_logits(found.logits(x), y) < log_loss_of_logits(truth, y)


@pytest.mark.parametrize("shrinkage", [0.1, 1.0, 30.0])
def test_no_other_pair_of_numbers_has_less_penalized_loss(differing, shrinkage):
    x, y, _ = differing
    x, y = x[:60], y[:60]
    known = np.random.default_rng(1).random(x.shape) < 0.7
    shared = Platt().fit(x, y, known)
    found = Vector(shrinkage=shrinkage).fit(x, y, known)
    for label in range(4):
        z, seen = shared.logits(x)[:, label][known[:, label]], y[:, label][known[:, label]]
        best = minimize(_penalized, [1.0, 0.0], args=(z, seen, shrinkage), tol=1e-10).x
        np.testing.assert_allclose(found.slopes_[label], shared.slope_ * best[0], rtol=1e-4)
        shift = shared.shift_ * best[0] + best[1]
        np.testing.assert_allclose(found.shifts_[label], shift, atol=1e-4)


def _penalized(pair, z, y, shrinkage):
    total = shrinkage / 2 * ((pair[0] - 1) ** 2 + pair[1] ** 2)
    for score, target in zip(z, y, strict=True):
        logit = pair[0] * score + pair[1]
        total += np.logaddexp(0, logit) - target * logit
    return total


def test_a_strong_pull_gives_platt(differing):
    x, y, _ = differing
    found, shared = Vector(shrinkage=1e9).fit(x, y), Platt().fit(x, y)
    np.testing.assert_allclose(found.logits(x), shared.logits(x), atol=1e-3)


@pytest.mark.parametrize("only", [0.0, 1.0, np.nan])
def test_a_label_without_known_positives_or_negatives_gets_the_shared_pair(differing, only):
    x, y, _ = differing
    y[:, 2] = only
    found = Vector().fit(x, y)
    assert found.slopes_[2] == found.shared_calibrator().slope_
    assert found.shifts_[2] == found.shared_calibrator().shift_


def test_a_label_whose_scores_are_upside_down_keeps_its_order(differing):
    x, y, _ = differing
    y[:, 1] = x[:, 1] < 0
    found = Vector().fit(x, y)
    assert 0 < found.slopes_[1] < 0.01
    np.testing.assert_allclose(found.predict_proba(x)[:, 1], 0.5, atol=0.05)


def test_rare_labels_are_better_off_than_alone_and_than_all_the_same():
    rng = np.random.default_rng(2)
    levels = rng.normal(-4, 1, size=60)
    truth = 2 * rng.normal(size=(4400, 60)) + levels
    x = 2 * (truth - rng.normal(0, 1, 60))
    y = (rng.random(truth.shape) < expit(truth)).astype(float)
    losses = [
        log_loss_of_logits(it.fit(x[:400], y[:400]).logits(x[400:]), y[400:])
        for it in (Vector(), Vector(shrinkage=0.01), Vector(shrinkage=1e6))
    ]
    assert losses[0] < min(losses[1:])


def test_a_saved_slope_must_be_above_zero():
    state = {"slopes": [1.0, -1.0], "shifts": [0.0, 0.0], "slope": 1.0, "shift": 0.0}
    with pytest.raises(DataError, match=r"above 0; got -1"):
        Vector().restore(state)


@pytest.mark.parametrize("shrinkage", [0.0, -1.0, float("inf")])
def test_the_pull_must_be_a_number_above_zero(shrinkage):
    with pytest.raises(ConfigError, match="shrinkage must be a finite number above 0"):
        Vector(shrinkage=shrinkage)
    with pytest.raises(ConfigError, match="shrinkage must be a finite number above 0"):
        Vector().set_params(shrinkage=shrinkage)


def test_other_labels_keep_their_parameters_and_new_ones_use_the_shared(differing):
    x, y, _ = differing
    fitted = Vector().fit(x[:60], y[:60])
    other = fitted.with_labels([2, None, 0])
    expected = fitted.logits(x)[:, [2, 1, 0]]
    expected[:, 1] = fitted.shared_calibrator().logits(x)[:, 1]
    np.testing.assert_allclose(other.logits(x[:, [2, 1, 0]]), expected)
