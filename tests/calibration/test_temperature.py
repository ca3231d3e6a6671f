import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

from surelabel.calibration import Temperature
from surelabel.errors import DataError
from surelabel.metrics import log_loss_of_logits


@pytest.mark.parametrize("true_temperature", [0.02, 0.5, 1.0, 3.0])
def test_finds_the_temperature_that_made_the_data(true_temperature):
    rng = np.random.default_rng(0)
    truth = 2 * rng.normal(size=(20000, 4))
    targets = rng.random(truth.shape) < expit(truth)
    found = Temperature().fit(true_temperature * truth, targets).temperature_
    assert found == pytest.approx(true_temperature, rel=0.02)


def test_no_other_temperature_is_likelier():
    rng = np.random.default_rng(1)
    logits = 3 * rng.normal(size=(50, 3)) - 1
    targets = rng.random((50, 3)) < expit(logits / 2)
    found = Temperature().fit(logits, targets).temperature_
    present = targets.sum()
    smoothed = np.where(targets, (present + 1) / (present + 2), 1 / (150 - present + 2))
    best = minimize_scalar(lambda t: log_loss_of_logits(logits / np.exp(t), smoothed))
    assert found == pytest.approx(np.exp(best.x), rel=1e-4)


def test_a_few_decisions_that_are_all_right_make_nothing_certain():
    fitted = Temperature().fit([[1.0, -1.0]], [[1, 0]])
    assert fitted.predict_proba([[1.0]]) == pytest.approx(2 / 3)  # one of two, as Laplace has it


def test_many_decisions_that_are_all_right_make_nearly_certain():
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(5000, 2))
    assert Temperature().fit(logits, logits > 0).temperature_ < 0.05


def test_decisions_that_are_all_wrong_get_the_hottest():
    assert Temperature().fit([[1.0, -1.0]], [[0, 1]]).temperature_ == 1000


def test_logits_that_are_all_zero_ask_for_nothing():
    assert Temperature().fit([[0.0, 0.0]], [[0, 1]]).temperature_ == 1


def test_zero_stays_zero():
    fitted = Temperature().fit([[3.0, 2.0, -1.0, 1.0]], [[1, 0, 0, 1]])
    assert fitted.logits([[0.0]])[0, 0] == 0


def test_a_saved_temperature_must_be_above_zero():
    with pytest.raises(DataError, match=r"above 0; got -1"):
        Temperature().restore({"temperature": -1.0})
