import numpy as np
import pytest

from surelabel.metrics import mean_average_precision


def test_the_mean_leaves_out_undefined_classes():
    s = np.array([[0.9, 0.2, 0.1], [0.8, 0.3, 0.7], [0.1, 0.4, 0.2]])
    t = np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0]])
    assert mean_average_precision(s, t) == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_without_positives_the_mean_is_undefined():
    assert np.isnan(mean_average_precision([[0.3], [0.6]], [[0], [0]]))
