"""Every row of docs/metrics.md: agreement with other libraries, or the difference."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    d2_brier_score,
    label_ranking_average_precision_score,
)
from sklearn.metrics import log_loss as log_loss_of_scikit_learn
from torchmetrics.classification import (
    BinaryCalibrationError,
    MultilabelAccuracy,
    MultilabelAveragePrecision,
)

from surelabel.errors import InputError
from surelabel.metrics import (
    accuracy,
    adaptive_ece,
    average_precision,
    average_precision_per_class,
    average_precision_per_image,
    balanced_accuracy_per_class,
    brier,
    brier_skill_per_class,
    ece,
    log_loss,
    mean_average_precision,
    reliability_bins,
)

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED = json.loads((GOLDEN / "binned_errors.json").read_text())
GIVEN = json.loads((GOLDEN / "calibration_error.json").read_text())
P, Y = np.array(GIVEN["p"]), np.array(GIVEN["y"])
TIED = np.round(P, 1)


def torchmetrics(metric, p=P, y=Y):
    return metric(torch.from_numpy(p), torch.from_numpy(y)).item()


def test_average_precision_groups_ties_like_scikit_learn_and_torchmetrics():
    for p in (P, TIED):
        each = [average_precision_score(Y[:, c], p[:, c]) for c in range(4)]
        np.testing.assert_allclose(average_precision_per_class(p, Y), each, rtol=1e-12)
        pooled = average_precision_score(Y, p, average="micro")
        assert average_precision(p, Y) == pytest.approx(pooled, rel=1e-12)
        macro = torchmetrics(MultilabelAveragePrecision(4), p)
        assert mean_average_precision(p, Y) == pytest.approx(macro, abs=1e-6)


@pytest.mark.filterwarnings("ignore:No positive samples:UserWarning")
def test_torchmetrics_counts_a_class_without_positives_as_zero():
    absent = Y.copy()
    absent[:, 1] = 0
    ours = mean_average_precision(P, absent)
    assert torchmetrics(MultilabelAveragePrecision(4), P, absent) == pytest.approx(0.75 * ours)


def test_scikit_learn_counts_an_image_without_positives_as_one():
    each = average_precision_per_image(P, Y)
    expected = np.where(np.isnan(each), 1, each).mean()
    assert np.isnan(each).any()
    found = label_ranking_average_precision_score(Y, P)
    assert found == pytest.approx(expected, rel=1e-12)


def test_brier_and_log_loss_are_those_of_scikit_learn_over_all_decisions():
    assert brier(P, Y) == pytest.approx(brier_score_loss(Y.ravel(), P.ravel()), rel=1e-12)
    assert log_loss(P, Y) == pytest.approx(log_loss_of_scikit_learn(Y.ravel(), P.ravel()))
    each = [d2_brier_score(Y[:, c], P[:, c]) for c in range(4)]
    np.testing.assert_allclose(brier_skill_per_class(P, Y), each, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:The y_prob values do not sum to one:UserWarning")
def test_of_a_matrix_scikit_learn_adds_up_the_labels():
    assert brier_score_loss(Y, P) == pytest.approx(4 * brier(P, Y))


def test_a_certain_mistake_costs_forty_nats_here_and_36_in_scikit_learn():
    assert log_loss([[1.0]], [[0]]) == pytest.approx(40)
    assert log_loss_of_scikit_learn([0], [1.0], labels=[0, 1]) == pytest.approx(36.04, abs=0.01)


def test_the_reliability_curve_is_that_of_scikit_learn():
    accuracies, confidences = calibration_curve(Y.ravel(), P.ravel(), n_bins=15)
    bins = reliability_bins(P, Y)
    assert (bins.counts > 0).all()
    np.testing.assert_allclose(bins.accuracy, accuracies, rtol=1e-12)
    np.testing.assert_allclose(bins.confidence, confidences, rtol=1e-12)


def test_torchmetrics_gives_a_probability_of_one_a_bin_of_its_own():
    p, y = np.array([0.05, 0.2, 0.5, 0.95, 1.0, 1.0]), np.array([0, 0, 1, 1, 1, 0])
    oracle = BinaryCalibrationError(n_bins=10)
    certain = p == 1
    apart = ece([p[~certain]], [y[~certain]], bins=10) * 4 / 6 + abs((p - y)[certain].sum()) / 6
    assert torchmetrics(oracle, p, y) == pytest.approx(apart, abs=1e-6)
    assert ece([p], [y], bins=10) < apart - 0.01


def test_torchmetrics_takes_what_is_no_probability_for_a_logit():
    oracle = BinaryCalibrationError(n_bins=10)
    assert np.isfinite(torchmetrics(oracle, np.array([0.2, 1.3]), np.array([0, 1])))
    with pytest.raises(InputError, match=r"probabilities must be in \[0, 1\].*1\.3"):
        ece([[0.2, 1.3]], [[0, 1]])


@pytest.mark.parametrize("bins", [10, 15])
def test_mapie_counts_the_edges_and_has_one_bin_less(bins):
    assert ece(P, Y, bins=bins) == pytest.approx(RECORDED["mapie"][str(bins + 1)], rel=1e-12)


def test_bins_between_quantiles_are_those_of_scikit_learn_where_nothing_ties():
    accuracies, confidences = calibration_curve(
        Y.ravel(), P.ravel(), n_bins=15, strategy="quantile"
    )
    expected = np.abs(accuracies - confidences).mean()  # 64 decisions in each
    assert adaptive_ece(P, Y) == pytest.approx(expected, rel=1e-9)


def test_accuracy_is_that_of_torchmetrics_and_balance_that_of_scikit_learn():
    expected = torchmetrics(MultilabelAccuracy(4, average="micro"))
    assert accuracy(P, Y) == pytest.approx(expected, abs=1e-6)
    each = [balanced_accuracy_score(Y[:, c], P[:, c] >= 0.5) for c in range(4)]
    np.testing.assert_allclose(balanced_accuracy_per_class(P, Y), each, rtol=1e-12)
