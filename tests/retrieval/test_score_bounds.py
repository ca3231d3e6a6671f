"""Bounds of log probabilities contain the values of all keys with the same high bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.retrieval.formula_probability import log_sigmoid
from surelabel.retrieval.score_bounds import bounds_of_high_plane
from surelabel.retrieval.sort_keys import sort_keys_of_floats, split_sort_keys

FLOATS = st.floats(-40, 40, width=32) | st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(FLOATS, min_size=1, max_size=20), st.sampled_from([1, -1]))
def test_the_value_is_between_its_bounds(values, sign):
    logits = np.array(values, np.float32)
    high, _ = split_sort_keys(sort_keys_of_floats(logits))
    scores = log_sigmoid(sign * logits)
    lower = bounds_of_high_plane(high, sign, is_upper=False)
    upper = bounds_of_high_plane(high, sign, is_upper=True)
    assert (lower <= scores).all()
    assert (scores <= upper).all()
    is_moderate = np.abs(logits) <= 40
    width = (upper - lower)[is_moderate]
    assert (width <= np.abs(logits[is_moderate]) / 64 + 1e-30).all()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("is_upper", [True, False])
def test_every_bound_is_a_log_probability(sign, is_upper):
    high = np.arange(1 << 16, dtype=np.uint16)
    bounds = bounds_of_high_plane(high, sign, is_upper=is_upper)
    assert bounds.dtype == np.float64
    assert (bounds <= 0).all()
    assert not np.isnan(bounds).any()
