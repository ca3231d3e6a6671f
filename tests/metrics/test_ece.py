import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torchmetrics.classification import BinaryCalibrationError

from surelabel.metrics import ece, ece_per_class

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED = json.loads((GOLDEN / "calibration_error.json").read_text())
P, Y = np.array(RECORDED["p"]), np.array(RECORDED["y"])


@pytest.mark.parametrize("bins", [10, 15])
def test_equals_the_recorded_numbers(bins):
    by_hand = RECORDED["by_hand"][str(bins)]
    assert ece(P, Y, bins=bins) == pytest.approx(by_hand["pooled"]["ECE"], rel=1e-12)
    expected = [of_class["ECE"] for of_class in by_hand["per_class"]]
    np.testing.assert_allclose(ece_per_class(P, Y, bins=bins), expected, rtol=1e-12)


@pytest.mark.parametrize("bins", [10, 15])
@pytest.mark.parametrize("library", ["netcal", "torchmetrics"])
def test_equals_the_recorded_numbers_of_other_libraries(library, bins):
    expected = RECORDED[library][str(bins)]["ece"]
    assert ece(P, Y, bins=bins) == pytest.approx(expected, rel=1e-12)


def test_equals_torchmetrics_where_no_probability_is_one():
    rng = np.random.default_rng(5)
    p = rng.random((300, 4)) ** 3
    y = (rng.random((300, 4)) < p).astype(int)
    oracle = BinaryCalibrationError(n_bins=15, norm="l1")
    expected = oracle(torch.from_numpy(p).ravel(), torch.from_numpy(y).ravel()).item()
    assert ece(p, y) == pytest.approx(expected, abs=1e-6)


def test_a_probability_of_one_belongs_to_the_last_bin():
    assert ece([[0.95, 1.0]], [[0, 1]], bins=10) == pytest.approx(abs(0.975 - 0.5))
