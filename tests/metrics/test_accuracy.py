import numpy as np
import pytest
from sklearn.metrics import accuracy_score, hamming_loss

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import accuracy, accuracy_per_class


@pytest.fixture
def predictions():
    rng = np.random.default_rng(4)
    p = rng.random((300, 4)) ** 2
    return p, (rng.random((300, 4)) < p).astype(int)


def test_equals_scikit_learn(predictions):
    p, y = predictions
    predicted = p >= 0.5
    assert accuracy(p, y) == pytest.approx(1 - hamming_loss(y, predicted), rel=1e-12)
    expected = [accuracy_score(y[:, c], predicted[:, c]) for c in range(4)]
    np.testing.assert_allclose(accuracy_per_class(p, y), expected, rtol=1e-12)


def test_predicting_no_label_is_accurate():
    y = np.zeros((100, 2))
    y[:4] = 1
    assert accuracy(np.zeros((100, 2)), y) == pytest.approx(0.96)


def test_a_probability_at_the_threshold_is_predicted_positive():
    assert accuracy([[0.5]], [[1]]) == 1
    assert accuracy([[0.3, 0.29]], [[1, 0]], threshold=0.3) == 1


@pytest.mark.parametrize("metric", [accuracy, accuracy_per_class])
def test_graded_targets_have_no_accuracy(metric):
    with pytest.raises(InputError, match=r"targets of an accuracy metric must be 0 or 1; got 0.3"):
        metric([[0.2, 0.4]], [[0.3, 1]])


def test_a_threshold_is_a_probability():
    with pytest.raises(ConfigError, match=r"threshold must be .*\[0, 1\]; got 1.5"):
        accuracy([[0.5]], [[1]], threshold=1.5)
