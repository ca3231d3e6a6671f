import numpy as np
import pytest
from scipy.special import expit

from surelabel.calibration import Isotonic, IsotonicPerClass
from surelabel.errors import ConfigError, DataError
from surelabel.metrics import log_loss_of_logits


@pytest.fixture
def differing():
    rng = np.random.default_rng(0)
    x = 2 * rng.normal(size=(3000, 3))
    truth = np.where(x < 0, 0.3 * x, 2 * x) + np.array([1.0, -1.0, -5.0])
    return x, (rng.random(x.shape) < expit(truth)).astype(float), truth


def test_is_the_mixture_written_out(differing):
    x, y, _ = differing
    found = IsotonicPerClass(pseudo_count=30).fit(x, y)
    pooled = Isotonic().fit(x, y).predict_proba(x)
    for label in range(3):
        own = Isotonic().fit(x[:, [label]], y[:, [label]]).predict_proba(x[:, [label]])[:, 0]
        fewer = min(y[:, label].sum(), 3000 - y[:, label].sum())
        share = fewer / (fewer + 30)
        expected = share * own + (1 - share) * pooled[:, label]
        np.testing.assert_allclose(found.predict_proba(x)[:, label], expected, rtol=1e-9)


@pytest.mark.parametrize("only", [0.0, 1.0, np.nan])
def test_a_label_without_known_positives_or_negatives_gets_the_pooled_curve(differing, only):
    x, y, _ = differing
    y[:, 1] = only
    found = IsotonicPerClass().fit(x, y)
    assert found.weights_[1] == 0
    pooled = found.shared_calibrator().logits(x)
    np.testing.assert_allclose(found.logits(x)[:, 1], pooled[:, 1], atol=1e-9)


def test_labels_of_other_levels_are_better_off_than_together(differing):
    x, y, truth = differing
    held_out = np.random.default_rng(1).random(x.shape) < expit(truth)
    losses = [
        log_loss_of_logits(it().fit(x, y).logits(x), held_out)
        for it in (IsotonicPerClass, Isotonic)
    ]
    assert losses[0] < losses[1] - 0.05


def test_weights_curves_and_labels_must_be_as_many(differing):
    state = IsotonicPerClass().fit(*differing[:2]).state()
    with pytest.raises(DataError, match=r"weights in .* and one curve for each weight"):
        IsotonicPerClass().restore(state | {"curves": state["curves"][:2]})
    with pytest.raises(DataError, match=r"weights in .* and one curve for each weight"):
        IsotonicPerClass().restore(state | {"weights": [0.5, 0.5, 1.5]})
    with pytest.raises(DataError, match="list of knots and a list of levels"):
        IsotonicPerClass().restore(state | {"curves": [1.0, 2.0, 3.0]})


def test_the_pseudo_count_must_be_above_zero():
    with pytest.raises(ConfigError, match=r"pseudo_count must be a finite number above 0; got -5"):
        IsotonicPerClass(pseudo_count=-5)
