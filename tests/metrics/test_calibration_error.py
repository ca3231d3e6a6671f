import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torchmetrics.classification import BinaryCalibrationError

from surelabel.errors import ConfigError
from surelabel.metrics import (
    ace,
    ace_per_class,
    ece,
    ece_of_candidates,
    ece_of_candidates_per_class,
    ece_per_class,
    mce,
    mce_per_class,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/calibration_error.json").read_text())
RECORDED = {"ace": "ACE_nonempty", "ece": "ECE", "mce": "MCE"}
POOLED = {"ace": ace, "ece": ece, "mce": mce}
EACH = {"ace": ace_per_class, "ece": ece_per_class, "mce": mce_per_class}
bins = pytest.mark.parametrize("bins", [10, 15])
name = pytest.mark.parametrize("name", POOLED)


@pytest.fixture
def recorded():
    return np.array(GOLDEN["p"]), np.array(GOLDEN["y"])


@bins
@name
def test_equals_the_recorded_numbers(name, bins, recorded):
    by_hand = GOLDEN["by_hand"][str(bins)]
    pooled = by_hand["pooled"][RECORDED[name]]
    assert POOLED[name](*recorded, bins=bins) == pytest.approx(pooled, rel=1e-12)
    expected = [each[RECORDED[name]] for each in by_hand["per_class"]]
    np.testing.assert_allclose(EACH[name](*recorded, bins=bins), expected, rtol=1e-12)


@bins
@pytest.mark.parametrize("library", ["netcal", "torchmetrics"])
def test_equals_what_other_libraries_said(library, bins, recorded):
    for name, expected in GOLDEN[library][str(bins)].items():
        assert POOLED[name](*recorded, bins=bins) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("name", "norm"), [("ece", "l1"), ("mce", "max")])
def test_equals_torchmetrics_where_no_probability_is_one(name, norm):
    rng = np.random.default_rng(5)
    p = rng.random((300, 4)) ** 3
    y = (rng.random((300, 4)) < p).astype(int)
    oracle = BinaryCalibrationError(n_bins=15, norm=norm)
    expected = oracle(torch.from_numpy(p).ravel(), torch.from_numpy(y).ravel()).item()
    assert POOLED[name](p, y) == pytest.approx(expected, abs=1e-6)


def test_one_falls_into_the_last_bin():
    p, y = [[0.95, 1.0]], [[0, 1]]
    assert mce(p, y, bins=10) == pytest.approx(abs(0.975 - 0.5))
    assert ece(p, y, bins=10) == pytest.approx(abs(0.975 - 0.5))


def test_empty_bins_do_not_count_in_the_average():
    assert ace([[0.1, 0.9]], [[0, 0]], bins=10) == pytest.approx((0.1 + 0.9) / 2)


def test_candidates_are_the_decisions_that_reach_the_threshold(recorded):
    p, y = recorded
    known = np.random.default_rng(0).random(p.shape) < 0.7
    for threshold in (0.0, 0.05, p[3, 1], 0.5):
        expected = ece(p, y, known & (p >= threshold))
        assert ece_of_candidates(p, y, known, threshold=threshold) == expected
        each = ece_per_class(p, y, known & (p >= threshold))
        found = ece_of_candidates_per_class(p, y, known, threshold=threshold)
        np.testing.assert_array_equal(found, each)


def test_without_candidates_there_is_no_error_to_speak_of():
    assert np.isnan(ece_of_candidates([[0.01]], [[0]]))


def test_a_threshold_is_a_probability():
    with pytest.raises(ConfigError, match=r"threshold must be .*\[0, 1\]. Got 5"):
        ece_of_candidates([[0.5]], [[1]], threshold=5)
