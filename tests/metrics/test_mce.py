import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torchmetrics.classification import BinaryCalibrationError

from surelabel.errors import ConfigError
from surelabel.metrics import mce, mce_per_class

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED = json.loads((GOLDEN / "calibration_error.json").read_text())
P, Y = np.array(RECORDED["p"]), np.array(RECORDED["y"])
NETCAL = json.loads((GOLDEN / "binned_errors.json").read_text())["netcal"]


@pytest.mark.parametrize("bins", [10, 15])
def test_equals_the_recorded_numbers(bins):
    by_hand = RECORDED["by_hand"][str(bins)]
    assert mce(P, Y, bins=bins) == pytest.approx(by_hand["pooled"]["MCE"], rel=1e-12)
    expected = [of_class["MCE"] for of_class in by_hand["per_class"]]
    np.testing.assert_allclose(mce_per_class(P, Y, bins=bins), expected, rtol=1e-12)


@pytest.mark.parametrize("bins", [10, 15])
@pytest.mark.parametrize("library", ["netcal", "torchmetrics"])
def test_equals_the_recorded_numbers_of_other_libraries(library, bins):
    expected = RECORDED[library][str(bins)]["mce"]
    assert mce(P, Y, bins=bins) == pytest.approx(expected, rel=1e-12)


def test_equals_torchmetrics_where_no_probability_is_one():
    rng = np.random.default_rng(5)
    p = rng.random((300, 4)) ** 3
    y = (rng.random((300, 4)) < p).astype(int)
    oracle = BinaryCalibrationError(n_bins=15, norm="max")
    expected = oracle(torch.from_numpy(p).ravel(), torch.from_numpy(y).ravel()).item()
    assert mce(p, y) == pytest.approx(expected, abs=1e-6)


def test_a_probability_of_one_belongs_to_the_last_bin():
    assert mce([[0.95, 1.0]], [[0, 1]], bins=10) == pytest.approx(abs(0.975 - 0.5))


@pytest.mark.parametrize("bins", [10, 15, 20])
@pytest.mark.parametrize("min_count", [20, 40])
def test_min_count_equals_the_sample_threshold_of_netcal(bins, min_count):
    expected = NETCAL[str(bins)][f"at_least_{min_count}"]["mce"]
    assert mce(P, Y, bins=bins, min_count=min_count) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("bins", [10, 15, 20])
def test_min_count_equals_the_sample_threshold_of_netcal_per_class(bins):
    expected = NETCAL[str(bins)]["at_least_5_per_class"]["mce"]
    per_class = mce_per_class(P, Y, bins=bins, min_count=5)
    np.testing.assert_allclose(per_class, expected, rtol=1e-12)


def test_min_count_is_one_by_default():
    assert mce(P, Y, min_count=1) == mce(P, Y)


def test_min_count_leaves_out_a_bin_of_a_single_label():
    p, y = [[0.1] * 20 + [0.9]], [[0] * 21]
    assert mce(p, y) == pytest.approx(0.9)
    assert mce(p, y, min_count=20) == pytest.approx(0.1)


def test_without_a_bin_of_min_count_the_error_is_undefined():
    assert np.isnan(mce([[0.1] * 19], [[0] * 19], min_count=20))
    assert np.isnan(mce_per_class([[0.1]], [[0]], min_count=20)).all()


@pytest.mark.parametrize("metric", [mce, mce_per_class])
def test_min_count_must_be_at_least_one(metric):
    with pytest.raises(ConfigError, match=r"min_count must be a whole number .* got 0"):
        metric(P, Y, min_count=0)
