import numpy as np
import pytest
import torch
from torchmetrics.classification import MulticlassCalibrationError

from surelabel.metrics import (
    ece,
    ece_of_predictions,
    ece_of_predictions_per_class,
    reliability_bins,
)


@pytest.fixture
def decisions():
    rng = np.random.default_rng(4)
    p = rng.random((300, 4)) ** 2
    return p, (rng.random((300, 4)) < p**1.5).astype(int)


def by_hand(p, y, bins):
    """Gaps of the answers, in bins of how sure they are."""
    sums = [0.0] * bins
    for probability, target in zip(p.ravel(), y.ravel(), strict=True):
        present = probability >= 0.5
        sure = probability if present else 1 - probability
        sums[min(int(sure * bins), bins - 1)] += sure - (present == target)
    return sum(map(abs, sums)) / p.size


@pytest.mark.parametrize("bins", [5, 10, 15])
def test_is_the_error_of_the_answers(bins, decisions):
    expected = by_hand(*decisions, bins)
    assert ece_of_predictions(*decisions, bins=bins) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("bins", [10, 15])
def test_equals_torchmetrics_with_two_classes(bins, decisions):
    p, y = (torch.from_numpy(d).ravel() for d in decisions)
    oracle = MulticlassCalibrationError(num_classes=2, n_bins=bins)
    expected = oracle(torch.stack([1 - p, p], dim=1), y).item()
    assert ece_of_predictions(*decisions, bins=bins) == pytest.approx(expected, abs=1e-6)


def test_where_no_bin_straddles_a_half_each_gap_is_the_same_in_both_conventions(decisions):
    p, y = decisions
    right = np.where(p >= 0.5, y, 1 - y)
    for k, gap in enumerate(reliability_bins(p, y, bins=10).gaps):
        inside = (p >= k / 10) & (p < (k + 1) / 10)
        folded = abs(right[inside].mean() - np.maximum(p, 1 - p)[inside].mean())
        assert gap == pytest.approx(folded, rel=1e-9)


@pytest.mark.parametrize("bins", [2, 10, 20])
def test_in_an_even_number_of_bins_it_is_never_above_the_other(bins, decisions):
    assert ece_of_predictions(*decisions, bins=bins) <= ece(*decisions, bins=bins)


@pytest.mark.parametrize("side", [lambda p: p / 2, lambda p: 1 - p / 2], ids=["below", "above"])
def test_with_all_probabilities_on_one_side_the_two_are_equal(side, decisions):
    p, y = side(decisions[0]), decisions[1]
    assert ece_of_predictions(p, y, bins=10) == pytest.approx(ece(p, y, bins=10), rel=1e-9)


def test_in_an_odd_number_of_bins_the_middle_one_may_hide_what_the_answers_show():
    p, y = [[0.48, 0.52]], [[0, 1]]
    assert ece(p, y, bins=15) == pytest.approx(0.0)
    assert ece_of_predictions(p, y, bins=15) == pytest.approx(0.48)


def test_mirrored_gaps_cancel():
    p, y = [[0.3, 0.7]], [[0, 0]]  # right by 0.3 too little, wrong by 0.7 too sure
    assert ece(p, y, bins=10) == pytest.approx(0.5)
    assert ece_of_predictions(p, y, bins=10) == pytest.approx(0.2)


def test_each_class_is_computed_separately(decisions):
    p, y = decisions
    expected = [by_hand(p[:, [c]], y[:, [c]], 15) for c in range(4)]
    np.testing.assert_allclose(ece_of_predictions_per_class(p, y), expected, rtol=1e-12)
