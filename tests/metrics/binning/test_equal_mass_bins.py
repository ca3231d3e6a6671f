import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.metrics.binning.equal_mass_bins import assign_equal_mass_bins

values = st.lists(st.integers(0, 12), min_size=1, max_size=40).map(np.array)
bins = st.integers(1, 9)


def by_hand(values, bins):
    """Each value by the middle of the ranks it ties for."""
    found = []
    for value in values:
        below, level = sum(v < value for v in values), sum(v == value for v in values)
        found.append(bins * (2 * below + level) // (2 * len(values)))
    return found


@given(values, bins)
def test_the_bin_follows_from_the_mean_rank(values, bins):
    assert assign_equal_mass_bins(values.astype(float), bins).tolist() == by_hand(
        values.tolist(), bins
    )


@given(values, bins)
def test_repeated_data_have_the_same_bins(values, bins):
    values = values.astype(float)
    twice = assign_equal_mass_bins(np.tile(values, 2), bins)
    np.testing.assert_array_equal(twice, np.tile(assign_equal_mass_bins(values, bins), 2))


@pytest.mark.parametrize(("count", "bins"), [(960, 15), (100, 7), (16, 15), (5, 10)])
def test_without_ties_no_bin_holds_two_more_than_another(count, bins):
    values = np.random.default_rng(0).permutation(count) / count
    sizes = np.bincount(assign_equal_mass_bins(values, bins), minlength=bins)
    assert sizes.max() - sizes.min() <= 1
    assert sizes.sum() == count


def test_even_parts_equal_sorting_and_splitting():
    values = np.random.default_rng(1).random(60)
    cut = np.split(np.argsort(values), 6)
    bin_ = assign_equal_mass_bins(values, 6)
    assert [set(bin_[part]) for part in cut] == [{k} for k in range(6)]


def test_no_values_have_no_bins():
    assert assign_equal_mass_bins(np.empty(0), 4).shape == (0,)
