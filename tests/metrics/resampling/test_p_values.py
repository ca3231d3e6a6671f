import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from surelabel.metrics.resampling.p_values import adjusted_p_values, bootstrap_p_values


def test_a_p_value_is_that_of_the_normal_distribution():
    random = np.random.default_rng(0)
    resampled = random.normal(0.3, 0.2, (30, 2))
    resampled[:3, 1] = np.nan
    found = bootstrap_p_values(np.array([0.3, -0.1]), resampled)
    for column, difference in enumerate((0.3, 0.1)):
        values = [value for value in resampled[:, column] if value == value]
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
        assert found[column] == pytest.approx(2 * norm.sf(difference / variance**0.5))


def test_a_constant_difference_other_than_zero_has_no_p_value():
    found = bootstrap_p_values(np.array([0.5, 0.0, np.nan]), np.array([[0.5, 0, np.nan]] * 4))
    assert np.isnan(found).tolist() == [True, False, True]


@given(st.lists(st.one_of(st.floats(0, 1), st.just(float("nan"))), max_size=12))
def test_adjusted_p_values_are_those_of_the_step_up_procedure(p_values):
    tested = sorted(p for p in p_values if p == p)
    found = adjusted_p_values(np.array(p_values, dtype=float))
    for p, adjusted in zip(p_values, found, strict=True):
        if p != p:
            assert np.isnan(adjusted)
            continue
        candidates = [len(tested) * q / rank for rank, q in enumerate(tested, 1) if q >= p]
        assert adjusted == pytest.approx(min(1, *candidates, 1))
