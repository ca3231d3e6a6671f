from itertools import permutations

import numpy as np
import pytest

from surelabel.errors import ConfigError
from surelabel.metrics import (
    f1_at_k,
    precision_at_k,
    precision_at_k_per_class,
    recall_at_k,
    recall_at_k_per_class,
)
from surelabel.metrics.topk import f1_at_k_per_class


def by_hand(scores, targets, known, k):
    """Hits, chosen and present of each class, averaged over all orders that the ties allow."""
    orders = list(permutations(range(scores.shape[1])))
    counts = np.zeros((3, scores.shape[1]))
    for row, truth, given in zip(scores, targets, known, strict=True):
        for order in orders:
            ranked = sorted((c for c in order if given[c]), key=lambda c: -row[c])
            for c in ranked[:k]:
                counts[:2, c] += truth[c] / len(orders), 1 / len(orders)
        counts[2] += truth * given
    return counts


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
def test_equals_counting_over_every_way_to_break_the_ties(k):
    rng = np.random.default_rng(k)
    scores = rng.integers(0, 3, (12, 5)) / 2
    targets, known = rng.integers(0, 2, (12, 5)), rng.random((12, 5)) < 0.7
    hits, chosen, present = by_hand(scores, targets, known, k)
    args = (scores, targets, known)
    np.testing.assert_allclose(precision_at_k_per_class(*args, k=k), hits / chosen)
    np.testing.assert_allclose(recall_at_k_per_class(*args, k=k), hits / present)
    np.testing.assert_allclose(f1_at_k_per_class(*args, k=k), 2 * hits / (chosen + present))
    assert precision_at_k(*args, k=k) == pytest.approx(hits.sum() / chosen.sum())
    assert recall_at_k(*args, k=k) == pytest.approx(hits.sum() / present.sum())
    assert f1_at_k(*args, k=k) == pytest.approx(2 * hits.sum() / (chosen + present).sum())


def test_many_pictures_are_the_sum_of_few():
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


def test_a_class_that_is_never_chosen_has_no_precision():
    found = precision_at_k_per_class([[0.9, 0.1], [0.8, 0.2]], [[1, 1], [0, 1]], k=1)
    np.testing.assert_array_equal(found, [0.5, np.nan])


@pytest.mark.parametrize("k", [0, -1, 1.5, float("nan"), float("inf")])
def test_k_must_be_a_whole_number_above_zero(k):
    with pytest.raises(ConfigError, match=f"at least 1. Got {k}"):
        precision_at_k([[0.1]], [[1]], k=k)


def test_without_classes_nothing_is_chosen():
    assert np.isnan(precision_at_k(np.zeros((3, 0)), np.zeros((3, 0))))
