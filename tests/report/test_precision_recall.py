import numpy as np
import pytest

from surelabel.metrics import average_precision, average_precision_per_class
from surelabel.report.precision_recall import (
    precision_recall_as_json,
    precision_recall_curve,
    select_labels_by_average_precision,
)


def test_the_area_under_the_curve_is_the_average_precision():
    random = np.random.default_rng(0)
    scores, targets = random.integers(0, 6, (50, 4)) / 5, random.random((50, 4)) < 0.3
    curve = precision_recall_curve(scores.ravel(), targets.ravel().astype(float))
    assert curve.average_precision == pytest.approx(average_precision(scores, targets))


def test_decisions_with_equal_scores_share_a_point():
    curve = precision_recall_curve(np.array([0.5, 0.5, 0.5, 0.1]), np.array([1.0, 0, 0, 1]))
    assert curve.scores.tolist() == [0.5, 0.1]
    assert curve.precision.tolist() == [1 / 3, 0.5]
    assert curve.recall.tolist() == [0.5, 1]


def test_there_is_no_curve_without_positives():
    assert precision_recall_curve(np.array([0.5, 0.1]), np.zeros(2)) is None


def test_the_labels_are_spread_over_the_order_of_average_precision():
    values = np.array([0.1, 0.9, np.nan, 0.5, 0.3, 0.7, 0.2, 0.6, 0.4, 0.8])
    assert select_labels_by_average_precision(values, np.full(10, 9)) == [1, 5, 3, 4, 0]
    positives = np.full(10, 9)
    positives[[1, 0]] = 4
    assert select_labels_by_average_precision(values, positives) == [9, 7, 3, 8, 6]
    assert select_labels_by_average_precision(values[:3], np.ones(3)) == [1, 0]
    assert select_labels_by_average_precision(np.full(3, np.nan), np.ones(3)) == []


def test_the_json_has_the_precision_at_each_recall(judged):
    found = judged(unknown=0.2)
    p, names = found.predictions.probabilities, found.predictions.names
    ap = average_precision_per_class(p, found.targets, found.known)
    held = precision_recall_as_json(names, p, found.targets, found.known, ap)
    assert held["recall"][[0, -1]].tolist() == [0.01, 1]
    lowest = p[found.known & (found.targets == 1)].min()
    assert held["precision"][-1] == found.targets[found.known & (p >= lowest)].mean()
    assert len(held["precision_per_label"]) == 5
    assert next(iter(held["precision_per_label"])) == names[int(np.nanargmax(ap))]
