import json
from pathlib import Path

import numpy as np
import pytest

from surelabel.errors import ConfigError
from surelabel.metrics import ace, ace_per_class, reliability_bins, reliability_bins_per_class

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED = json.loads((GOLDEN / "calibration_error.json").read_text())
P, Y = np.array(RECORDED["p"]), np.array(RECORDED["y"])
NETCAL = json.loads((GOLDEN / "binned_errors.json").read_text())["netcal"]


@pytest.mark.parametrize("bins", [10, 15])
def test_equals_the_recorded_numbers(bins):
    by_hand = RECORDED["by_hand"][str(bins)]
    assert ace(P, Y, bins=bins) == pytest.approx(by_hand["pooled"]["ACE_nonempty"], rel=1e-12)
    expected = [of_class["ACE_nonempty"] for of_class in by_hand["per_class"]]
    np.testing.assert_allclose(ace_per_class(P, Y, bins=bins), expected, rtol=1e-12)


@pytest.mark.parametrize("bins", [10, 15])
@pytest.mark.parametrize("library", ["netcal"])
def test_equals_the_recorded_numbers_of_other_libraries(library, bins):
    expected = RECORDED[library][str(bins)]["ace"]
    assert ace(P, Y, bins=bins) == pytest.approx(expected, rel=1e-12)


def test_empty_bins_do_not_count_in_the_average():
    assert ace([[0.1, 0.9]], [[0, 0]], bins=10) == pytest.approx((0.1 + 0.9) / 2)


@pytest.mark.parametrize("bins", [10, 15, 20])
@pytest.mark.parametrize("min_count", [20, 40])
def test_min_count_equals_netcal_except_for_the_divisor(bins, min_count):
    expected = NETCAL[str(bins)][f"at_least_{min_count}"]["ace"]
    counts = reliability_bins(P, Y, bins=bins).counts
    share = (counts >= min_count).sum() / (counts > 0).sum()
    error = ace(P, Y, bins=bins, min_count=min_count)
    assert error * share == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("bins", [10, 15, 20])
def test_min_count_equals_netcal_per_class_except_for_the_divisor(bins):
    expected = NETCAL[str(bins)]["at_least_5_per_class"]["ace"]
    counts = reliability_bins_per_class(P, Y, bins=bins).counts
    share = (counts >= 5).sum(axis=1) / (counts > 0).sum(axis=1)
    per_class = ace_per_class(P, Y, bins=bins, min_count=5) * share
    np.testing.assert_allclose(per_class, expected, rtol=1e-12)


def test_min_count_is_one_by_default():
    assert ace(P, Y, min_count=1) == ace(P, Y)


def test_min_count_leaves_out_a_bin_of_a_single_label():
    p, y = [[0.1] * 20 + [0.9]], [[0] * 21]
    assert ace(p, y, min_count=20) == pytest.approx(0.1)


def test_without_a_bin_of_min_count_the_error_is_undefined():
    assert np.isnan(ace([[0.1] * 19], [[0] * 19], min_count=20))


@pytest.mark.parametrize("metric", [ace, ace_per_class])
def test_min_count_must_be_at_least_one(metric):
    with pytest.raises(ConfigError, match=r"min_count must be a whole number .* got 0"):
        metric(P, Y, min_count=0)
