import numpy as np
import pytest

from surelabel.metrics import ece, mce, mce_weighted, mce_weighted_per_class, reliability_bins

TEN_P = [[0.05, 0.12, 0.31, 0.38, 0.55, 0.62, 0.71, 0.86, 0.93, 0.97]]
TEN_Y = [[0, 0, 0, 1, 1, 0, 1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("bins", "weighted", "true", "expected"), [(5, 0.045, 0.45, 0.15), (10, 0.062, 0.62, 0.208)]
)
def test_ten_decisions_by_hand(bins, weighted, true, expected):
    assert mce_weighted(TEN_P, TEN_Y, bins=bins) == pytest.approx(weighted)
    assert mce(TEN_P, TEN_Y, bins=bins) == pytest.approx(true)
    assert ece(TEN_P, TEN_Y, bins=bins) == pytest.approx(expected)


def test_is_the_largest_term_of_the_ece_and_never_above_it():
    rng = np.random.default_rng(0)
    p = rng.random((200, 3)) ** 2
    y = rng.random((200, 3)) < p
    bins = reliability_bins(p, y)
    assert mce_weighted(p, y) == pytest.approx((bins.counts * bins.gaps).max() / 600)
    assert mce_weighted(p, y) <= ece(p, y)
    assert (mce_weighted_per_class(p, y) <= 1).all()


def test_a_rare_bin_may_have_any_gap():
    p, y = [[0.0] * 99 + [0.9]], [[0] * 100]
    assert mce(p, y) == pytest.approx(0.9)
    assert mce_weighted(p, y) == pytest.approx(0.009)
