import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value
from scipy.stats import binom

from surelabel.decisions.bentkus import bentkus_p_values, hoeffding_sample_size

LEVEL = st.floats(0.01, 0.99)


def by_hand(total, n, level):
    """The lowest bound of Markov's inequality over whole numbers t, with sums of plain floats."""
    mass = [binom.pmf(k, n, level) for k in range(n + 1)]
    bounds = [
        sum(mass[k] * (t - k) for k in range(t)) / (t - total)
        for t in range(1, n + 2)
        if t > total + 1e-6
    ]
    return min(1.0, *bounds, 1.0)


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), LEVEL)
def test_p_values_are_the_lowest_bound_over_all_gaps(risks, level):
    ours = bentkus_p_values(np.array([np.sum(risks)]), np.array([float(len(risks))]), level)
    assert ours[0] == pytest.approx(by_hand(np.sum(risks), len(risks), level), rel=1e-6, abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), LEVEL)
def test_p_values_lie_between_the_binomial_one_and_that_of_mapie(risks, level):
    n, mean = len(risks), np.array([np.mean(risks)])
    theirs = compute_hoeffding_bentkus_p_value(mean, n, level)[:, 0]
    ours = bentkus_p_values(mean * n, np.array([float(n)]), level)
    assert ours[0] <= theirs[0] + 1e-9
    assert ours[0] >= binom.cdf(np.floor(mean[0] * n - 1e-6), n, level) - 1e-9


def test_without_a_wrong_label_the_p_value_is_the_binomial_one():
    counts = np.array([1.0, 22.0, 500.0])
    np.testing.assert_allclose(bentkus_p_values(np.zeros(3), counts, 0.1), 0.9**counts)


def test_one_wrong_label_in_forty_is_proof_and_was_none_before():
    ours = bentkus_p_values(np.array([1.0]), np.array([40.0]), 0.1)[0]
    theirs = compute_hoeffding_bentkus_p_value(np.array([1 / 40]), 40, 0.1)[0, 0]
    assert ours <= 0.1 < 0.17 < theirs


def test_rounding_errors_of_a_sum_change_nothing():
    sums = np.array([3.0, 3 - 1e-7, 3 + 1e-7])
    p = bentkus_p_values(sums, np.full(3, 80.0), 0.1)
    np.testing.assert_allclose(p, p[0], rtol=1e-5)


def test_nothing_seen_proves_nothing():
    assert bentkus_p_values(np.zeros(2), np.array([0.0, 100.0]), 0.1)[0] == 1


def test_a_million_images_are_no_trouble():
    p = bentkus_p_values(np.array([0.0, 99_000.0, 101_000.0]), np.full(3, 1e6), 0.1)
    assert p[0] == 0
    assert 1 < p[1] / binom.cdf(99_000, 1_000_000, 0.1) < np.e
    assert p[2] == 1


@pytest.mark.parametrize("risk", [lambda draws: draws, lambda draws: (draws + 0.05) / 1.1])
@pytest.mark.parametrize("level", [0.05, 0.3])
@pytest.mark.parametrize("n", [10, 200])
def test_at_the_level_itself_small_p_values_are_rare(level, n, risk):
    rng = np.random.default_rng(0)
    risks = risk((rng.random((4000, n)) < level).astype(float))
    mean = float(risk(np.array(level)))
    p = bentkus_p_values(risks.sum(axis=1), np.full(4000, float(n)), mean)
    for size in (0.01, 0.1, 0.5):
        assert (p <= size).mean() <= size + 0.02


@given(st.floats(0, 0.9), LEVEL, st.floats(0.5, 0.99))
def test_the_number_of_cases_that_is_needed_proves_it(risk, level, confidence):
    needed = hoeffding_sample_size(risk, level, confidence)
    if needed is None:
        assert risk >= level
    elif needed < 1e6:
        p = bentkus_p_values(np.array([risk * needed]), np.array([float(needed)]), level)[0]
        assert p <= (1 - confidence) * (1 + 1e-6)
