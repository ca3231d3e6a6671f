import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, hamming_loss

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import (
    accuracy,
    accuracy_per_class,
    balanced_accuracy,
    balanced_accuracy_per_class,
)


@pytest.fixture
def decisions():
    rng = np.random.default_rng(4)
    p = rng.random((300, 4)) ** 2
    return p, (rng.random((300, 4)) < p).astype(int)


def test_equals_scikit_learn(decisions):
    p, y = decisions
    called = p >= 0.5
    assert accuracy(p, y) == pytest.approx(1 - hamming_loss(y, called), rel=1e-12)
    each = [accuracy_score(y[:, c], called[:, c]) for c in range(4)]
    np.testing.assert_allclose(accuracy_per_class(p, y), each, rtol=1e-12)
    each = [balanced_accuracy_score(y[:, c], called[:, c]) for c in range(4)]
    np.testing.assert_allclose(balanced_accuracy_per_class(p, y), each, rtol=1e-12)
    assert balanced_accuracy(p, y) == pytest.approx(np.mean(each), rel=1e-12)


def test_a_model_that_never_says_present_is_accurate_but_not_balanced():
    y = np.zeros((100, 2))
    y[:4] = 1
    assert accuracy(np.zeros((100, 2)), y) == pytest.approx(0.96)
    assert balanced_accuracy(np.zeros((100, 2)), y) == pytest.approx(0.5)


def test_a_probability_at_the_threshold_is_called_present():
    assert accuracy([[0.5]], [[1]]) == 1
    assert accuracy([[0.3, 0.29]], [[1, 0]], threshold=0.3) == 1


def test_a_class_without_positives_or_without_negatives_is_left_out_of_the_balance():
    p, y = [[0.9, 0.9, 0.9], [0.1, 0.9, 0.9]], [[1, 1, 0], [0, 1, 0]]
    found = balanced_accuracy_per_class(p, y)
    np.testing.assert_array_equal(found, [1, np.nan, np.nan])
    assert balanced_accuracy(p, y) == 1


@pytest.mark.parametrize("metric", [accuracy, balanced_accuracy_per_class])
def test_graded_targets_have_no_accuracy(metric):
    with pytest.raises(InputError, match=r"targets of an accuracy must be 0 or 1. Got 0.3"):
        metric([[0.2, 0.4]], [[0.3, 1]])


def test_a_threshold_is_a_probability():
    with pytest.raises(ConfigError, match=r"threshold must be .*\[0, 1\]. Got 1.5"):
        accuracy([[0.5]], [[1]], threshold=1.5)
