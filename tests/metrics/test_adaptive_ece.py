import json
from pathlib import Path

import numpy as np
import pytest

from surelabel.errors import ConfigError
from surelabel.metrics import adaptive_ece, adaptive_ece_per_class

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED = json.loads((GOLDEN / "binned_errors.json").read_text())
GIVEN = json.loads((GOLDEN / "calibration_error.json").read_text())
P, Y = np.array(GIVEN["p"]), np.array(GIVEN["y"])

# ten decisions whose sums can be followed with a pencil
TEN_P = np.array([[0.05, 0.12, 0.31, 0.38, 0.55, 0.62, 0.71, 0.86, 0.93, 0.97]]).T
TEN_Y = np.array([[0, 0, 0, 1, 1, 0, 1, 1, 1, 1]]).T


def sorted_and_cut(p, gaps, bins):
    """Parts of the stable order, each with the sum of its gaps."""
    order = np.argsort(p, kind="stable")
    return sum(abs(gaps[part].sum()) for part in np.array_split(order, bins)) / len(p)


@pytest.mark.parametrize(("bins", "expected"), [(5, 0.118), (10, 0.270)])
def test_ten_decisions_by_hand(bins, expected):
    assert adaptive_ece(TEN_P, TEN_Y, bins=bins) == pytest.approx(expected, abs=1e-12)


def test_equals_the_recorded_number():
    assert adaptive_ece(P, Y) == pytest.approx(RECORDED["equal_mass_by_hand"], rel=1e-12)


@pytest.mark.parametrize("bins", ["10", "15", "20"])
def test_equals_netcal_without_ties_at_the_edges(bins):
    expected = RECORDED["netcal"][bins]["equal_mass"]
    assert adaptive_ece(P, Y, bins=int(bins)) == pytest.approx(expected, rel=1e-12)


def test_released_code_differs_only_in_the_bin_around_a_half():
    p, y = P.ravel(), Y.ravel()
    answers = np.where(p >= 0.5, p - y, y - p)
    assert sorted_and_cut(p, answers, 15) == pytest.approx(RECORDED["released_code"], abs=1e-6)
    parts = np.split(np.argsort(p), 15)
    ours = [abs((p - y)[part].sum()) for part in parts]
    theirs = [abs(answers[part].sum()) for part in parts]
    other = [p[part] for k, part in enumerate(parts) if not np.isclose(ours[k], theirs[k])]
    assert len(other) == 1
    assert other[0].min() < 0.5 < other[0].max()


@pytest.mark.parametrize("bins", [1, 4, 15])
def test_each_class_is_sorted_and_cut_by_itself(bins):
    found = adaptive_ece_per_class(P[:60], Y[:60], bins=bins)
    expected = [sorted_and_cut(P[:60, c], (P - Y)[:60, c], bins) for c in range(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_ties_do_not_depend_on_the_order_of_the_rows():
    p = np.full((40, 1), 0.3)
    y = np.repeat([[0], [1]], 20, axis=0)
    assert adaptive_ece(p, y) == pytest.approx(0.2)
    assert adaptive_ece(p, y[::-1]) == pytest.approx(0.2)
    assert sorted_and_cut(p[:, 0], (p - y)[:, 0], 2) == pytest.approx(0.5)  # what cutting says


def test_resolves_the_range_of_most_probabilities():
    p = np.array([[0.001] * 50 + [0.03] * 50]).T  # one bin of equal width, two of equal mass
    y = np.array([[1] * 2 + [0] * 98]).T
    assert adaptive_ece(p, y, bins=2) > 2 * abs(p.mean() - y.mean())


@pytest.mark.parametrize("metric", [adaptive_ece, adaptive_ece_per_class])
def test_there_must_be_bins(metric):
    with pytest.raises(ConfigError, match=r"bins must be a whole number .* got 0"):
        metric(P, Y, bins=0)
