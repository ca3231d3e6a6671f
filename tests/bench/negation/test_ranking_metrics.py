import numpy as np
import pytest

from surelabel.bench.negation.ranking_metrics import (
    AP,
    P_AT_5,
    P_AT_10,
    VIOLATIONS,
    mean_average_precision_of_queries,
    mean_ranking_metrics,
    ranking_metrics_of_query,
    resample_counts,
)
from surelabel.bench.resampling import (
    bench_resampling_mean_average_precision,
    bench_resampling_weights,
)

N = 60


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    is_positive = rng.random((N, 4)) < 0.4
    return rng.normal(size=(N, 4)) + is_positive, is_positive


def metrics_by_hand(scores, relevant, unwanted, counts):
    """Metrics of one resample: write out the ranked list with repeated images."""
    ranked = []
    for row in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        ranked += [row] * int(counts[row])
    hits, precisions = 0, []
    for row in dict.fromkeys(ranked):
        if relevant[row]:
            hits += counts[row]
            end = len(ranked) - ranked[::-1].index(row)  # repeated images share their last rank
            precisions += [hits / end] * int(counts[row])
    return {
        AP: sum(precisions) / len(precisions) if precisions else float("nan"),
        P_AT_5: sum(relevant[row] for row in ranked[:5]) / 5,
        P_AT_10: sum(relevant[row] for row in ranked[:10]) / 10,
        VIOLATIONS: sum(unwanted[row] for row in ranked[:10]) / 10,
    }


def test_metrics_of_each_resample_equal_a_loop_over_the_ranked_list(data):
    scores, y = data
    relevant, unwanted = y[:, 0] & ~y[:, 1], y[:, 1]
    weights = bench_resampling_weights(N, resamples=8, seed=1)
    found = ranking_metrics_of_query(scores[:, 0], relevant, unwanted, resample_counts(weights))
    for resample, counts in enumerate(weights):
        expected = metrics_by_hand(scores[:, 0], relevant, unwanted, counts)
        for name, value in expected.items():
            assert found[name][resample] == pytest.approx(value), name


def test_hits_beyond_the_first_block_are_counted_if_a_resample_leaves_them_out():
    counts = np.ones((N, 2), np.uint8)
    counts[:45, 1] = 0  # the first 45 ranks are not in the second resample
    relevant = np.arange(N) % 3 == 0
    found = ranking_metrics_of_query(-np.arange(N, dtype=float), relevant, ~relevant, counts)
    assert found[P_AT_5].tolist() == [0.4, 0.4]
    assert found[P_AT_10].tolist() == [0.4, 0.4]
    assert found[VIOLATIONS].tolist() == [0.6, 0.6]


def test_a_query_without_a_relevant_image_has_no_average_precision():
    counts = np.ones((N, 1), np.uint8)
    nothing = np.zeros(N, bool)
    found = ranking_metrics_of_query(np.arange(N, dtype=float), nothing, nothing, counts)
    assert np.isnan(found[AP]).all()
    assert found[P_AT_5] == 0


def test_the_mean_ap_equals_that_of_the_shared_resampling(data):
    scores, y = data
    pairs = np.array([[0, 1], [2, 3], [3, 0]])
    weights = bench_resampling_weights(N, resamples=8, seed=1)

    def score(of_pairs):
        return scores[:, of_pairs[:, 0]]

    found = mean_ranking_metrics(score, pairs, y, resample_counts(weights))
    relevant = y[:, pairs[:, 0]] & ~y[:, pairs[:, 1]]
    expected = bench_resampling_mean_average_precision(score(pairs), relevant, weights)
    np.testing.assert_allclose(found[AP], expected)
    assert mean_average_precision_of_queries(score, pairs, y) == pytest.approx(expected[0])
    assert found["undefined"].tolist() == [0] * 9


def test_queries_without_relevant_images_are_counted_and_left_out_of_the_mean(data):
    scores, y = data
    pairs = np.array([[0, 1], [2, 2]])  # no image has label 2 and does not have it

    def score(of_pairs):
        return scores[:, of_pairs[:, 0]]

    counts = np.ones((N, 1), np.uint8)
    both = mean_ranking_metrics(score, pairs, y, counts)
    first = mean_ranking_metrics(score, pairs[:1], y, counts)
    assert both["undefined"] == 1
    assert both[AP] == first[AP]
