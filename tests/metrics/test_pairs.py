from itertools import combinations, permutations

import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import (
    ece,
    noise_floor,
    pair_ece,
    pair_ece_but_not,
    pair_reliability,
    pair_reliability_but_not,
    pairs,
)

BOTH = [pair_ece, pair_ece_but_not]


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
    but_not = metric is pair_ece_but_not
    expected = by_hand(*decisions, 15, threshold, but_not)
    assert metric(*decisions, threshold=threshold) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("metric", BOTH)
def test_pairs_taken_some_at_a_time_say_the_same(metric, decisions, monkeypatch):
    expected = metric(*decisions)
    monkeypatch.setattr(pairs, "CELLS", 200)
    assert metric(*decisions) == pytest.approx(expected, rel=1e-12)


def test_labels_that_come_together_are_calibrated_alone_and_wrong_in_pairs():
    rng = np.random.default_rng(1)
    p = np.repeat(rng.random((4000, 1)), 4, axis=1)
    together = np.repeat(rng.random((4000, 1)), 4, axis=1) < p
    apart = rng.random((4000, 4)) < p
    assert ece(p, together) < 0.03
    assert pair_ece(p, apart) < 0.02
    assert pair_ece(p, together) == pytest.approx(1 / 6, abs=0.02)  # mean of p - p²
    assert pair_ece_but_not(p, together) == pytest.approx(1 / 6, abs=0.02)


def test_its_noise_floor_is_that_of_labels_which_are_independent(decisions):
    p, y, _ = decisions
    floor = noise_floor(pair_ece, p)
    assert 0.4 * floor < pair_ece(p, y) < 2 * floor


def test_pairs_beyond_the_number_are_drawn_by_the_seed():
    rng = np.random.default_rng(2)
    p = rng.random((30, 40))
    y = (rng.random((30, 40)) < p).astype(float)
    some = [pair_ece(p, y, pairs=20, seed=seed) for seed in (0, 0, 1)]
    assert some[0] == some[1] != some[2]
    assert pair_reliability(p, y, pairs=20).counts.sum() == 20 * 30
    assert pair_reliability(p, y).counts.sum() == 780 * 30
    assert pair_reliability_but_not(p, y).counts.sum() == 1560 * 30


def test_every_pair_has_its_place():
    p = np.array([[0.1, 0.2, 0.3, 0.4]])
    found = pair_reliability(p, np.zeros((1, 4)), bins=1000)
    there = (found.confidence[found.counts > 0]).round(9)
    assert there.tolist() == [0.02, 0.03, 0.04, 0.06, 0.08, 0.12]
    found = pair_reliability_but_not(p, np.zeros((1, 4)), bins=1000)
    expected = {round(a * (1 - b), 9) for a, b in permutations(p[0], 2)}
    assert set(found.confidence[found.counts > 0].round(9)) == expected
    assert found.counts.sum() == 12


@pytest.mark.parametrize("metric", BOTH)
@pytest.mark.parametrize("classes", [0, 1])
def test_a_label_alone_makes_no_pair(metric, classes):
    assert np.isnan(metric(np.full((4, classes), 0.5), np.zeros((4, classes))))


@pytest.mark.parametrize("metric", BOTH)
def test_what_does_not_fit_is_refused(metric, decisions):
    p, y, _ = decisions
    with pytest.raises(ConfigError, match=r"pairs must be .* Got 0"):
        metric(p, y, pairs=0)
    with pytest.raises(ConfigError, match=r"bins must be .* Got 0"):
        metric(p, y, bins=0)
    with pytest.raises(ConfigError, match=r"threshold must be .* Got 2"):
        metric(p, y, threshold=2)
    with pytest.raises(InputError, match=r"probabilities must lie in"):
        metric(2 * p, y)
