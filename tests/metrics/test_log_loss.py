import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss as by_scikit_learn

from surelabel.errors import InputError
from surelabel.metrics import log_loss, log_loss_of_logits, log_loss_per_class


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(60, 4))
    return logits, (rng.random((60, 4)) < expit(logits)).astype(float)


def test_equals_scikit_learn(batch):
    p, y = expit(batch[0]), batch[1]
    assert log_loss(p, y) == pytest.approx(by_scikit_learn(y.ravel(), p.ravel()))
    expected = [by_scikit_learn(y[:, c], p[:, c], labels=[0, 1]) for c in range(4)]
    np.testing.assert_allclose(log_loss_per_class(p, y), expected)


def test_logits_equal_their_sigmoid(batch):
    known = np.random.default_rng(1).random(batch[1].shape) < 0.5
    from_probabilities = log_loss(expit(batch[0]), batch[1], known)
    assert log_loss_of_logits(*batch, known) == pytest.approx(from_probabilities)


def test_graded_targets_mix_both_losses():
    expected = -0.25 * np.log(0.1) - 0.75 * np.log(0.9)
    assert log_loss([[0.1]], [[0.25]]) == pytest.approx(expected)
    assert log_loss_of_logits([[np.log(1 / 9)]], [[0.25]]) == pytest.approx(expected)


def test_a_certain_mistake_costs_forty_nats_and_a_certain_hit_nothing():
    assert log_loss([[0.0, 1.0]], [[1, 0]]) == 40
    assert log_loss([[0.0, 1.0]], [[0, 1]]) == 0
    assert log_loss_of_logits([[-40.0, 40.0]], [[1, 0]]) == pytest.approx(40)


def test_logits_are_not_rounded_where_probabilities_are():
    assert expit(38.0) == 1
    assert log_loss_of_logits([[38.0]], [[0]]) == pytest.approx(38)


def test_logits_must_be_finite():
    with pytest.raises(InputError, match=r"logits must be finite\; got 1"):
        log_loss_of_logits([[np.inf, 0.0]], [[1, 0]])
