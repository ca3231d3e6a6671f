import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from surelabel.errors import InputError
from surelabel.metrics import balanced_accuracy, balanced_accuracy_per_class


def test_equals_scikit_learn():
    rng = np.random.default_rng(4)
    p = rng.random((300, 4)) ** 2
    y = (rng.random((300, 4)) < p).astype(int)
    expected = [balanced_accuracy_score(y[:, c], p[:, c] >= 0.5) for c in range(4)]
    np.testing.assert_allclose(balanced_accuracy_per_class(p, y), expected, rtol=1e-12)
    assert balanced_accuracy(p, y) == pytest.approx(np.mean(expected), rel=1e-12)


def test_predicting_no_label_is_not_balanced():
    y = np.zeros((100, 2))
    y[:4] = 1
    assert balanced_accuracy(np.zeros((100, 2)), y) == pytest.approx(0.5)


def test_a_class_without_positives_or_without_negatives_is_left_out():
    p, y = [[0.9, 0.9, 0.9], [0.1, 0.9, 0.9]], [[1, 1, 0], [0, 1, 0]]
    per_class = balanced_accuracy_per_class(p, y)
    np.testing.assert_array_equal(per_class, [1, np.nan, np.nan])
    assert balanced_accuracy(p, y) == 1


@pytest.mark.parametrize("metric", [balanced_accuracy, balanced_accuracy_per_class])
def test_graded_targets_have_no_accuracy(metric):
    with pytest.raises(InputError, match=r"targets of an accuracy metric must be 0 or 1; got 0.3"):
        metric([[0.2, 0.4]], [[0.3, 1]])
