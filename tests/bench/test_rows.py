import numpy as np
import pytest
from scipy.stats import ttest_rel

from surelabel.bench.rows import (
    ComparisonRow,
    difference_over_seeds,
    intervals_exclude_zero,
    metrics_by_seed,
)
from surelabel.metrics import ConfidenceInterval

ABOVE, BELOW = ConfidenceInterval(0.2, 0.1, 0.3), ConfidenceInterval(-0.2, -0.3, -0.1)
AROUND = ConfidenceInterval(0.1, -0.1, 0.3)
UNDEFINED = ConfidenceInterval(0.1, float("nan"), float("nan"))


def test_a_row_has_the_mean_over_its_seeds():
    row = ComparisonRow("a", metrics_by_seed([{"ece": 0.1}, {"ece": 0.4}]))
    assert row.mean("ece") == pytest.approx(0.25)


def test_a_difference_is_paired_over_seeds():
    first, second = [0.5, 0.7, 0.65], [0.4, 0.45, 0.6]
    difference = difference_over_seeds(first, second)
    expected = ttest_rel(first, second).confidence_interval(0.95)
    assert difference.value == pytest.approx(np.mean(first) - np.mean(second))
    assert (difference.low, difference.high) == pytest.approx((expected.low, expected.high))


def test_a_row_without_seeds_is_compared_with_each_seed_of_the_other():
    assert difference_over_seeds([0.5], [0.1, 0.3]) == difference_over_seeds([0.5] * 2, [0.1, 0.3])


@pytest.mark.parametrize(
    ("intervals", "excluded"),
    [
        ([ABOVE], True),
        ([BELOW], True),
        ([AROUND], False),
        ([ABOVE, ABOVE], True),
        ([ABOVE, BELOW], False),
        ([BELOW, AROUND], False),
        ([ABOVE, UNDEFINED], False),
        ([UNDEFINED, ABOVE], False),
    ],
)
def test_zero_is_excluded_only_if_all_intervals_are_on_one_side(intervals, excluded):
    assert intervals_exclude_zero(*intervals) == excluded
