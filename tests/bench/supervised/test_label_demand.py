from math import inf

import pytest

from surelabel.bench.supervised.label_demand import labels_needed
from surelabel.metrics import ConfidenceInterval

COUNTS = [10, 100, 1000]
CURVE = [
    ConfidenceInterval(0.4, 0.2, 0.6),
    ConfidenceInterval(0.6, 0.5, 0.7),
    ConfidenceInterval(0.5, 0.5, 0.9),
]


def test_levels_are_interpolated_in_the_logarithm_of_the_count():
    (demand,) = labels_needed(COUNTS, CURVE, [0.5])
    assert demand.count == pytest.approx(10**1.5)
    assert (demand.low, demand.high) == (10, pytest.approx(100))


def test_a_level_that_no_count_reaches_needs_infinitely_many_images():
    demands = labels_needed(COUNTS, CURVE, [0.3, 0.65, 0.95])
    assert [demand.count for demand in demands] == [10, inf, inf]
    assert demands[1].low == pytest.approx(10**1.5)
    assert demands[1].high == inf


def test_the_first_crossing_counts():
    (demand,) = labels_needed(COUNTS, CURVE, [0.6])
    assert demand.count == pytest.approx(100)
