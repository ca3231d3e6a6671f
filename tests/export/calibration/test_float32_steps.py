import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from surelabel.export.calibration.float32_steps import StepIndex, first_float32

NUMBERS = st.floats(-1e30, 1e30)


@given(numbers=st.lists(NUMBERS, min_size=1, max_size=6))
@hypothesis.settings(max_examples=25)
def test_the_first_float32_number_of_a_condition_is_found(numbers):
    limits = np.array(numbers)
    found = first_float32(lambda x: x >= limits, limits.shape)
    assert found.dtype == np.float32
    assert (found >= limits).all()
    assert (np.nextafter(found, np.float32(-np.inf)).astype(float) < limits).all()


def test_a_condition_that_is_never_or_always_true_has_a_limit_outside_the_scores():
    found = first_float32(lambda x: np.array([False, True]), (2,))
    np.testing.assert_array_equal(found, [np.inf, np.finfo(np.float32).min])


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 8, 9])
def test_a_step_is_counted_from_the_first_number_of_the_next(count):
    edges = np.sort(np.random.default_rng(count).normal(size=(3, count)), axis=1)
    edges = edges.astype(np.float32)
    x = np.concatenate([np.random.default_rng(1).normal(size=(20, 3)) * 2, edges.T])
    x = x.astype(np.float32)
    per_label = StepIndex(edges)(torch.from_numpy(x)).numpy()
    for row, column, found in zip(edges, x.T, per_label.T, strict=True):
        expected = np.searchsorted(row, column, side="right")
        np.testing.assert_array_equal(found, expected)
        shared = StepIndex(row)(torch.from_numpy(column[:, None])).numpy()[:, 0]
        np.testing.assert_array_equal(shared, expected)
