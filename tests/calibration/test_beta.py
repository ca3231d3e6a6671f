import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from surelabel.calibration import Beta, Platt
from surelabel.errors import ConfigError, DataError
from surelabel.metrics import log_loss_of_logits

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "netcal_calibrators.json").read_text(encoding="utf-8")
)


def column(values):
    return np.array(values)[:, None]


def bent(x, below, above, shift):
    return below * -np.logaddexp(0, -x) + above * np.logaddexp(0, x) + shift


@pytest.mark.parametrize(("below", "above", "shift"), [(0.5, 2.0, -1.0), (2.0, 0.3, 0.5)])
def test_finds_the_bend_that_made_the_data(below, above, shift):
    rng = np.random.default_rng(0)
    x = 2 * rng.normal(size=(20000, 2))
    truth = expit(bent(x, below, above, shift))
    found = Beta().fit(x, rng.random(x.shape) < truth)
    np.testing.assert_allclose(found.slopes_, [below, above], rtol=0.1)
    np.testing.assert_allclose(found.predict_proba(x), truth, atol=0.015)


def test_agrees_with_netcal_but_for_the_smoothed_targets():
    x, y = column(GOLDEN["logits"]), column(GOLDEN["targets"])
    found = Beta(shrinkage=0).fit(np.tile(x, (200, 1)), np.tile(y, (200, 1)))
    expected = column(GOLDEN["beta"])
    np.testing.assert_allclose(found.predict_proba(column(GOLDEN["query"])), expected, atol=5e-4)


def test_equals_logistic_regression_on_smoothed_targets():
    x, y = column(GOLDEN["logits"]), column(GOLDEN["targets"])
    present = y.sum()
    soft = np.where(y, (present + 1) / (present + 2), 1 / (y.size - present + 2))[:, 0]
    features = np.hstack([np.log(expit(x)), -np.log(expit(-x))])
    twice, weight = np.vstack([features, features]), np.concatenate([soft, 1 - soft])
    targets = [1] * y.size + [0] * y.size
    oracle = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(twice, targets, weight)
    found = Beta(shrinkage=0).fit(x, y)
    np.testing.assert_allclose(found.slopes_, oracle.coef_[0], rtol=1e-4)
    assert found.shift_ == pytest.approx(oracle.intercept_[0], rel=1e-4)


def test_a_bend_costs_platt_more():
    x, y = column(GOLDEN["logits"]), column(GOLDEN["targets"])
    losses = [log_loss_of_logits(it().fit(x, y).logits(x), y) for it in (Beta, Platt)]
    assert losses[0] < losses[1] - 0.005


def test_where_no_score_is_above_zero_both_slopes_are_about_platts():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2000, 3)) - 8
    y = rng.random(x.shape) < expit(0.5 * x + 1)
    found = Beta().fit(x, y)
    np.testing.assert_allclose(found.slopes_, Platt().fit(x, y).slope_, rtol=0.05)


def test_order_is_kept_where_the_data_would_turn_it_round():
    found = Beta().fit(column([-2.0, -1.0, 1.0, 2.0]), column([1, 1, 0, 0]))
    assert (found.slopes_ > 0).all()
    assert np.diff(found.logits(column([-30.0, 0.0, 30.0])), axis=0).min() > 0


def test_is_exact_where_a_probability_would_have_been_rounded_to_one():
    it = Beta().restore({"slopes": [1.0, 1.0], "shift": 0.0})
    np.testing.assert_allclose(it.logits([[39.5, -39.5, 36.8]]), [[39.5, -39.5, 36.8]])


@pytest.mark.parametrize("slopes", [[1.0], [1.0, 0.0], [1.0, 1.0, 1.0]])
def test_saved_slopes_must_be_two_above_zero(slopes):
    with pytest.raises(DataError, match="two numbers above 0"):
        Beta().restore({"slopes": slopes, "shift": 0.0})


def test_the_pull_must_not_be_negative():
    with pytest.raises(ConfigError, match=r"shrinkage must be a finite number >= 0.* got -1"):
        Beta(shrinkage=-1)


def test_a_fit_over_several_blocks_has_no_gradient_of_the_penalized_log_loss():
    rng = np.random.default_rng(0)
    x = 2 * rng.normal(size=80_001)
    y = (rng.random(x.shape) < expit(bent(x, 0.5, 1.5, -0.5))).astype(float)
    fitted = Beta(shrinkage=3.0).fit(x[:, None], y[:, None])
    low, high = 1 / (len(y) - y.sum() + 2), (y.sum() + 1) / (y.sum() + 2)
    residual = expit(bent(x, *fitted.slopes_, fitted.shift_)) - (low + (high - low) * y)
    pull = 3.0 * (fitted.slopes_[0] - fitted.slopes_[1]) / len(x)
    gradient = [
        (residual * -np.logaddexp(0, -x)).mean() + pull,
        (residual * np.logaddexp(0, x)).mean() - pull,
        residual.mean(),
    ]
    np.testing.assert_allclose(gradient, 0, atol=1e-6)
