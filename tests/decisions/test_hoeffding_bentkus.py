import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

from surelabel.decisions.hoeffding_bentkus import (
    hoeffding_bentkus_p_values,
    hoeffding_bentkus_sample_size,
)

LEVEL = st.floats(0.01, 0.99)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), LEVEL)
def test_p_values_are_those_of_mapie(risks, level):
    n, mean = len(risks), np.array([np.mean(risks)])
    theirs = compute_hoeffding_bentkus_p_value(mean, n, level)[:, 0]
    ours = hoeffding_bentkus_p_values(mean * n, np.array([float(n)]), level)
    if abs(mean[0] * n - round(mean[0] * n)) > 1e-6 or mean[0] in (0, 1):  # where ceil is stable
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_nothing_seen_proves_nothing():
    assert hoeffding_bentkus_p_values(np.zeros(2), np.array([0.0, 100.0]), 0.1)[0] == 1


@pytest.mark.parametrize("level", [0.05, 0.3])
@pytest.mark.parametrize("n", [10, 200])
def test_at_the_level_itself_small_p_values_are_rare(level, n):
    rng = np.random.default_rng(0)
    totals = rng.binomial(n, level, size=4000).astype(float)
    p = hoeffding_bentkus_p_values(totals, np.full(4000, float(n)), level)
    for size in (0.01, 0.1, 0.5):
        assert (p <= size).mean() <= size + 0.02


@given(st.floats(0, 0.9), LEVEL, st.floats(0.5, 0.99))
def test_the_number_of_cases_that_is_needed_proves_it(risk, level, confidence):
    needed = hoeffding_bentkus_sample_size(risk, level, confidence)
    if needed is None:
        assert risk >= level
    elif needed < 1e6:

        def gap(n):
            return hoeffding_bentkus_p_values(np.array([risk * n]), np.array([float(n)]), level)[0]

        assert gap(needed) <= (1 - confidence) * (1 + 1e-6)
