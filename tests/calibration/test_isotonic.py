import numpy as np
import pytest
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from surelabel.calibration import Isotonic, Platt
from surelabel.errors import ConfigError, DataError
from surelabel.metrics import log_loss_of_logits


@pytest.fixture
def bent():
    rng = np.random.default_rng(0)
    x = 2 * rng.normal(size=(4000, 3))
    truth = np.where(x < 0, 0.3 * x, 2 * x) - 1
    return x, (rng.random(x.shape) < expit(truth)).astype(float), truth


def test_equals_scikit_learn_on_all_known_decisions_together(bent):
    x, y, _ = bent
    known = np.random.default_rng(1).random(x.shape) < 0.5
    oracle = IsotonicRegression().fit(x[known], y[known])
    found = Isotonic(pseudo_count=1e-9).fit(x, y, known).predict_proba(x)
    np.testing.assert_allclose(found[known], oracle.predict(x[known]), atol=1e-6)


def test_follows_a_bend_that_platt_cannot(bent):
    x, y, truth = bent
    held_out = np.random.default_rng(2).random(x.shape) < expit(truth)
    found = log_loss_of_logits(Isotonic().fit(x, y).logits(x), held_out)
    assert found < log_loss_of_logits(Platt().fit(x, y).logits(x), held_out) - 0.01
    assert found < log_loss_of_logits(truth, held_out) + 0.01


def test_raw_scores_of_any_scale_will_do(bent):
    x, y, _ = bent
    found = Isotonic().fit(1e-6 * x - 7, y).logits(1e-6 * x - 7)
    np.testing.assert_allclose(found, Isotonic().fit(x, y).logits(x), atol=1e-6)


def test_decisions_that_are_all_right_are_not_certain():
    found = Isotonic().fit([[-2.0, -1.0, 1.0, 2.0]], [[0, 0, 1, 1]])
    np.testing.assert_allclose(found.predict_proba([[-9.0, 9.0]]), [[0.5 / 3, 2.5 / 3]])


@pytest.mark.parametrize(("knots", "levels"), [([0.0, 0.0], [0.0, 1.0]), ([0.0, 1.0], [1.0, 0.0])])
def test_a_saved_curve_must_rise(knots, levels):
    with pytest.raises(DataError, match="must have increasing knots"):
        Isotonic().restore({"knots": knots, "levels": levels})


def test_the_pseudo_count_must_be_above_zero():
    with pytest.raises(ConfigError, match=r"pseudo_count must be a finite number above 0; got 0"):
        Isotonic(pseudo_count=0)
