"""Sort keys have the order of the values, and give them back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from surelabel.retrieval.sort_keys import (
    floats_of_sort_keys,
    join_key_planes,
    rows_of_largest_keys,
    sort_keys_of_floats,
    split_sort_keys,
)

FLOATS = arrays.arrays(
    np.float32,
    st.integers(1, 40),
    elements=st.floats(width=32, allow_nan=False) | st.sampled_from([0.0, -0.0, 1e-45, -1e-45]),
)


@given(values=FLOATS)
def test_keys_have_the_order_of_the_values_and_give_them_back(values):
    keys = sort_keys_of_floats(values)
    assert keys.dtype == np.uint32
    assert np.array_equal(keys[:, None] < keys, values[:, None] < values)
    assert np.array_equal(floats_of_sort_keys(keys), values)
    high, low = split_sort_keys(keys)
    assert high.dtype == low.dtype == np.uint16
    assert np.array_equal(join_key_planes(high, low), keys)
    assert (high[values > 0] >= split_sort_keys(sort_keys_of_floats([0.0]))[0]).all()


@given(keys=st.lists(st.integers(0, 5), max_size=30), count=st.integers(0, 35))
def test_the_rows_of_the_largest_keys_are_those_of_a_full_sort(keys, count):
    rows = rows_of_largest_keys(np.array(keys, np.uint32), count)
    assert rows.tolist() == sorted(range(len(keys)), key=lambda row: (-keys[row], row))[:count]


@pytest.mark.parametrize("values", [[np.inf, 1.0], [-np.inf, -3e38]])
def test_infinite_thresholds_have_keys_beyond_all_values(values):
    infinite, finite = sort_keys_of_floats(values).tolist()
    assert (infinite > finite) == (values[0] > values[1])
