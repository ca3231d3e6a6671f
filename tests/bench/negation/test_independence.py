from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import logit

from surelabel.bench.negation.independence import conjunction_calibrations, pair_calibrations
from surelabel.bench.negation.query_sets import sample_conjunctions
from surelabel.bench.resampling import bench_resampling_weights


@pytest.fixture(scope="module")
def targets(splits):
    """Targets of the first labels of both splits."""
    return (splits.test.targets > 0)[:, :10], (splits.validation.targets > 0)[:, :10]


@pytest.fixture(scope="module")
def p(targets):
    return np.random.default_rng(5).uniform(0.01, 0.3, targets[0].shape)


@pytest.fixture(scope="module")
def weights(targets):
    return bench_resampling_weights(len(targets[0]), resamples=10)


def test_shares_of_pairs_equal_loops_over_pairs_and_images(targets, p, weights, plan):
    test, validation = targets
    found = pair_calibrations(logit(p), test, validation, weights, plan, seed=0)
    for row in found:
        expected, observed = [], []
        for a, b in combinations(range(10), 2):
            n_both = sum(x and y for x, y in validation[:, [a, b]].tolist())
            if row.is_frequent and n_both < plan.min_pair_images:
                continue
            expected.append(sum(p[i, a] * p[i, b] for i in range(len(p))) / len(p))
            observed.append(sum(x and y for x, y in test[:, [a, b]].tolist()) / len(p))
        errors = np.subtract(expected, observed)
        assert row.n_pairs == len(errors)
        assert row.expected_share == pytest.approx(np.mean(expected))
        assert row.observed_share == pytest.approx(np.mean(observed))
        assert row.signed_error.value == pytest.approx(errors.mean())
        assert row.absolute_error == pytest.approx(np.abs(errors).mean())
    assert [row.is_frequent for row in found] == [False, True]


def test_conjunctions_compare_probability_and_relevance_rate(targets, p, weights, plan):
    test, validation = targets
    found = conjunction_calibrations(logit(p), test, validation, weights, plan, seed=0)
    row = next(row for row in found if row.length == 2 and row.with_unwanted)
    conjunctions = sample_conjunctions(validation, 2, plan.conjunctions, with_unwanted=True)
    probabilities, matches = [], []
    for conjunction in conjunctions:
        (a,), (b,) = conjunction.wanted, conjunction.unwanted
        for i in range(len(p)):
            probabilities.append(p[i, a] * (1 - p[i, b]))
            matches.append(bool(test[i, a]) and not test[i, b])
    probabilities, matches = np.array(probabilities), np.array(matches)
    bins = (probabilities * 15).astype(int)
    ece = sum(abs((probabilities[bins == b] - matches[bins == b]).sum()) for b in range(15)) / len(
        bins
    )
    assert row.n_queries == len(conjunctions)
    assert row.mean_probability == pytest.approx(probabilities.mean())
    assert row.relevance_rate == pytest.approx(matches.mean())
    assert row.difference.value == pytest.approx(probabilities.mean() - matches.mean())
    assert row.ratio.value == pytest.approx(probabilities.mean() / matches.mean())
    assert row.ece == pytest.approx(ece)


def test_independent_labels_have_no_error_beyond_sampling(p, plan):
    rng = np.random.default_rng(1)
    many = np.tile(p, (20, 1))
    sampled = rng.random(many.shape) < many
    weights = bench_resampling_weights(len(many), resamples=50)
    settings = replace(plan, min_pair_images=1)
    for row in pair_calibrations(logit(many), sampled, sampled, weights, settings, seed=0):
        assert row.signed_error.low < 0 < row.signed_error.high
        assert row.absolute_error < 1.5 * row.absolute_error_noise_floor


def test_labels_that_occur_together_have_too_low_probabilities(p, plan):
    together = np.repeat(np.random.default_rng(2).random((len(p), 1)) < 0.2, 10, axis=1)
    weights = bench_resampling_weights(len(p), resamples=50)
    logits = np.full(p.shape, logit(0.2))
    (row, *_) = pair_calibrations(logits, together, together, weights, plan, seed=0)
    assert row.expected_share == pytest.approx(0.04)
    assert row.signed_error.high < 0
