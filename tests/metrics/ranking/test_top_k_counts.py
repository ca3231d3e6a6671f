from itertools import permutations

import numpy as np
import pytest

from surelabel.metrics import (
    f1_at_k,
    f1_at_k_per_class,
    precision_at_k,
    precision_at_k_per_class,
    recall_at_k,
    recall_at_k_per_class,
)
from surelabel.metrics.ranking.top_k_counts import count_top_k


def counts_over_all_tie_breaks(scores, targets, known, k):
    """Hits, selected labels and positives of each class, averaged over all orders of the ties."""
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
    expected = counts_over_all_tie_breaks(scores, targets, known, k)
    hits, selected, positives = expected
    args = (scores, targets, known)
    np.testing.assert_allclose(count_top_k(*args, k), expected)
    np.testing.assert_allclose(precision_at_k_per_class(*args, k=k), hits / selected)
    np.testing.assert_allclose(recall_at_k_per_class(*args, k=k), hits / positives)
    np.testing.assert_allclose(f1_at_k_per_class(*args, k=k), 2 * hits / (selected + positives))
    assert precision_at_k(*args, k=k) == pytest.approx(hits.sum() / selected.sum())
    assert recall_at_k(*args, k=k) == pytest.approx(hits.sum() / positives.sum())
    assert f1_at_k(*args, k=k) == pytest.approx(2 * hits.sum() / (selected + positives).sum())
