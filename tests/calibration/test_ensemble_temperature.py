import numpy as np
import pytest
from scipy.special import expit, logit

from surelabel.calibration import EnsembleTemperature, Temperature
from surelabel.errors import DataError
from surelabel.metrics import log_loss_of_logits


def test_finds_the_mixture_that_made_the_data():
    rng = np.random.default_rng(0)
    x = 4 * rng.normal(size=(20000, 2)) - 2
    truth = 0.7 * expit(x) + 0.3 * 0.35
    y = rng.random(x.shape) < truth
    found = EnsembleTemperature().fit(x, y)
    np.testing.assert_allclose(found.predict_proba(x), truth, atol=0.03)
    assert found.weights_[2] > 0.1


def test_no_other_mixture_has_less_loss():
    rng = np.random.default_rng(1)
    x = 3 * rng.normal(size=(80, 3)) - 1
    y = rng.random(x.shape) < 0.6 * expit(x / 2) + 0.1
    found = EnsembleTemperature().fit(x, y)
    present = y.sum()
    soft = np.where(y, (present + 1) / (present + 2), 1 / (y.size - present + 2))
    best = log_loss_of_logits(found.logits(x), soft)
    parts = [expit(x / found.temperature_), expit(x), np.full_like(x, y.mean())]
    for i in range(21):
        for j in range(21 - i):
            weights = (i / 20, j / 20, 1 - (i + j) / 20)
            p = sum(w * part for w, part in zip(weights, parts, strict=True))
            assert best <= log_loss_of_logits(logit(p), soft) + 1e-9


def test_is_never_worse_than_temperature_alone():
    rng = np.random.default_rng(2)
    x = 3 * rng.normal(size=(500, 3)) - 1
    y = rng.random(x.shape) < 0.7 * expit(x) + 0.1
    losses = [
        log_loss_of_logits(it().fit(x, y).logits(x), y) for it in (EnsembleTemperature, Temperature)
    ]
    assert losses[0] < losses[1]


def test_tails_are_exact_where_a_probability_would_have_been_rounded_to_one():
    it = EnsembleTemperature()
    it.restore({"temperature": 1.0, "weights": [0.5, 0.5, 0.0], "prior": 0.1})
    np.testing.assert_allclose(it.logits([[39.0, -39.0]]), [[39, -39]])


@pytest.mark.parametrize(
    ("weights", "prior"), [([0.5, 0.4, 0.0], 0.1), ([1.0, 0.0], 0.1), ([1.0, 0.0, 0.0], 1.0)]
)
def test_a_saved_mixture_must_be_one(weights, prior):
    with pytest.raises(DataError, match=r"three weights >= 0 that sum to 1, and a prior"):
        EnsembleTemperature().restore({"temperature": 1.0, "weights": weights, "prior": prior})
