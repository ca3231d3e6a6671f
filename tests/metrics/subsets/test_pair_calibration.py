from itertools import combinations, permutations

import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import (
    ece,
    noise_floor,
    pair_ece,
    pair_ece_first_without_second,
    pair_reliability_bins,
    pair_reliability_bins_first_without_second,
)
from surelabel.metrics.subsets import pair_calibration

BOTH = [pair_ece, pair_ece_first_without_second]


@pytest.fixture
def decisions():
    rng = np.random.default_rng(0)
    p = rng.random((90, 5))
    return p, (rng.random((90, 5)) < p).astype(float), rng.random((90, 5)) < 0.7


def by_hand(p, y, known, bins, threshold=0.0, but_not=False):
    sums, count = [0.0] * bins, 0
    couples = permutations(range(5), 2) if but_not else combinations(range(5), 2)
    for i, j in couples:
        for n in range(len(p)):
            q = p[n, i] * (1 - p[n, j] if but_not else p[n, j])
            if known[n, i] and known[n, j] and q >= threshold:
                t = y[n, i] * (1 - y[n, j] if but_not else y[n, j])
                sums[min(int(q * bins), bins - 1)] += q - t
                count += 1
    return sum(map(abs, sums)) / count


@pytest.mark.parametrize("threshold", [0.0, 0.2])
@pytest.mark.parametrize("metric", BOTH)
def test_equals_all_pairs_written_out(metric, threshold, decisions):
    but_not = metric is pair_ece_first_without_second
    expected = by_hand(*decisions, 15, threshold, but_not)
    assert metric(*decisions, threshold=threshold) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("metric", BOTH)
def test_blocks_of_pairs_do_not_change_the_result(metric, decisions, monkeypatch):
    expected = metric(*decisions)
    monkeypatch.setattr(pair_calibration, "MAX_PRODUCTS", 200)
    assert metric(*decisions) == pytest.approx(expected, rel=1e-12)


def test_dependent_labels_are_calibrated_alone_but_not_in_pairs():
    rng = np.random.default_rng(1)
    p = np.repeat(rng.random((4000, 1)), 4, axis=1)
    together = np.repeat(rng.random((4000, 1)), 4, axis=1) < p
    apart = rng.random((4000, 4)) < p
    assert ece(p, together) < 0.03
    assert pair_ece(p, apart) < 0.02
    assert pair_ece(p, together) == pytest.approx(1 / 6, abs=0.02)  # mean of p - p²
    assert pair_ece_first_without_second(p, together) == pytest.approx(1 / 6, abs=0.02)


def test_its_noise_floor_is_that_of_labels_which_are_independent(decisions):
    p, y, _ = decisions
    floor = noise_floor(pair_ece, p)
    assert 0.4 * floor < pair_ece(p, y) < 2 * floor


def test_pairs_beyond_max_pairs_are_sampled_with_the_seed():
    rng = np.random.default_rng(2)
    p = rng.random((30, 40))
    y = (rng.random((30, 40)) < p).astype(float)
    some = [pair_ece(p, y, max_pairs=20, seed=seed) for seed in (0, 0, 1)]
    assert some[0] == some[1] != some[2]
    assert pair_reliability_bins(p, y, max_pairs=20).counts.sum() == 20 * 30
    assert pair_reliability_bins(p, y).counts.sum() == 780 * 30
    assert pair_reliability_bins_first_without_second(p, y).counts.sum() == 1560 * 30


def test_every_pair_occurs_once():
    p = np.array([[0.1, 0.2, 0.3, 0.4]])
    found = pair_reliability_bins(p, np.zeros((1, 4)), bins=1000)
    there = (found.confidence[found.counts > 0]).round(9)
    assert there.tolist() == [0.02, 0.03, 0.04, 0.06, 0.08, 0.12]
    found = pair_reliability_bins_first_without_second(p, np.zeros((1, 4)), bins=1000)
    expected = {round(a * (1 - b), 9) for a, b in permutations(p[0], 2)}
    assert set(found.confidence[found.counts > 0].round(9)) == expected
    assert found.counts.sum() == 12


@pytest.mark.parametrize("metric", BOTH)
@pytest.mark.parametrize("classes", [0, 1])
def test_a_single_label_has_no_pair(metric, classes):
    assert np.isnan(metric(np.full((4, classes), 0.5), np.zeros((4, classes))))


@pytest.mark.parametrize("metric", BOTH)
def test_invalid_arguments_are_refused(metric, decisions):
    p, y, _ = decisions
    with pytest.raises(ConfigError, match=r"max_pairs must be .* got 0"):
        metric(p, y, max_pairs=0)
    with pytest.raises(ConfigError, match=r"bins must be .* got 0"):
        metric(p, y, bins=0)
    with pytest.raises(ConfigError, match=r"threshold must be .* got 2"):
        metric(p, y, threshold=2)
    with pytest.raises(InputError, match=r"probabilities must be in"):
        metric(2 * p, y)
