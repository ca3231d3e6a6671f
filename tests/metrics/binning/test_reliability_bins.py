import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import ConfigError
from surelabel.metrics import reliability_bins, reliability_bins_per_class


@pytest.mark.parametrize("bins", [1, 2, 10, 15, 49, 100])
def test_edges_belong_to_the_bin_above_and_one_to_the_last(bins):
    edges = np.arange(bins + 1) / bins
    found = reliability_bins(edges[None], np.zeros((1, bins + 1)), bins=bins)
    assert found.counts.tolist() == [1] * (bins - 1) + [2]
    below = np.nextafter(edges[1:], 0)
    found = reliability_bins(below[None], np.zeros((1, bins)), bins=bins)
    assert found.counts.tolist() == [1] * bins


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 60))
def test_equals_a_search_among_the_edges(probabilities, bins):
    p = np.array(probabilities)
    place = np.searchsorted(np.arange(bins) / bins, p, side="right") - 1
    found = reliability_bins(p[None], (p[None] > 0.5), bins=bins)
    for b in range(bins):
        inside = p[place == b]
        assert found.counts[b] == len(inside)
        if len(inside):
            assert found.confidence[b] == pytest.approx(inside.mean())
            assert found.accuracy[b] == pytest.approx((inside > 0.5).mean())
        else:
            assert np.isnan([found.confidence[b], found.accuracy[b], found.gaps[b]]).all()


def test_classes_add_up_to_the_whole():
    rng = np.random.default_rng(0)
    p, y, known = rng.random((50, 3)), rng.integers(0, 2, (50, 3)), rng.random((50, 3)) < 0.6
    whole, each = reliability_bins(p, y, known), reliability_bins_per_class(p, y, known)
    assert each.counts.shape == (3, 15)
    np.testing.assert_array_equal(each.counts.sum(axis=0), whole.counts)
    assert whole.counts.sum() == known.sum()
    for c in range(3):
        alone = reliability_bins(p[:, [c]], y[:, [c]], known[:, [c]])
        np.testing.assert_allclose(each.accuracy[c], alone.accuracy)
        np.testing.assert_allclose(each.confidence[c], alone.confidence)


@pytest.mark.parametrize("bins", [0, 2.5, float("nan"), float("inf")])
def test_bins_must_be_a_whole_number_above_zero(bins):
    with pytest.raises(ConfigError, match=f"bins must be .* got {bins}"):
        reliability_bins([[0.5]], [[1]], bins=bins)
