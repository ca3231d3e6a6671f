import numpy as np
import pytest

from surelabel.metrics import f1_at_k, precision_at_k, recall_at_k


def test_many_images_are_the_sum_of_few():
    rng = np.random.default_rng(4)
    s, t = rng.integers(0, 9, (1300, 6)), rng.integers(0, 2, (1300, 6))
    parts = [f1_at_k(s[i : i + 1], t[i : i + 1], k=2) for i in range(1300)]
    weights = 2 + t.sum(axis=1)
    assert f1_at_k(s, t, k=2) == pytest.approx(np.average(parts, weights=weights))


def test_f1_is_the_harmonic_mean_of_precision_and_recall():
    rng = np.random.default_rng(0)
    args = rng.random((30, 6)), rng.integers(0, 2, (30, 6))
    p, r = precision_at_k(*args, k=2), recall_at_k(*args, k=2)
    assert f1_at_k(*args, k=2) == pytest.approx(2 * p * r / (p + r))
