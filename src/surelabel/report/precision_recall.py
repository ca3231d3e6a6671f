"""Compute precision-recall curves of all decisions together, and of some labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelabel.arrays import Array, ColumnIndices, Flags

MAX_CURVES = 5  # curves of single labels
MIN_POSITIVES = 5  # minimum positives of a plotted label, if five labels have them
RECALL_LEVELS = np.arange(1, 101) / 100  # recalls of the curves in JSON


@dataclass(frozen=True)
class PrecisionRecallCurve:
    """Precision and recall at each distinct score, from the highest score to the lowest.

    Attributes:
        scores: Distinct scores of the decisions, decreasing, ``(g,)``.
        precision: Precision of the decisions with at least this score, in [0, 1], ``(g,)``.
        recall: Recall of the decisions with at least this score, in [0, 1], ``(g,)``.
    """

    scores: Array
    precision: Array
    recall: Array

    @property
    def average_precision(self) -> float:
        """Return the area under the stepwise curve."""
        return float((np.diff(self.recall, prepend=0) * self.precision).sum())

    def precision_at_recall(self, levels: Array) -> Array:
        """Return the precision at the highest score with at least each recall, ``(k,)``.

        Args:
            levels: Recall levels in (0, 1], ``(k,)``.
        """
        rows = np.searchsorted(self.recall, levels - 1e-12)
        return self.precision[np.minimum(rows, self.precision.size - 1)]


def precision_recall_curve(scores: Array, targets: Array) -> PrecisionRecallCurve | None:
    """Compute the precision-recall curve of decisions, with one point for each distinct score.

    Args:
        scores: Scores or probabilities of m decisions with known targets, ``(m,)``.
        targets: Targets in [0, 1], ``(m,)``. A target of 0.5 or more is positive.

    Returns:
        The curve, or None if no decision is positive.

    Example:
        >>> curve = precision_recall_curve(np.array([0.9, 0.8, 0.1]), np.array([1, 0, 1]))
        >>> curve.precision.round(2), curve.recall, round(curve.average_precision, 4)
        (array([1.  , 0.5 , 0.67]), array([0.5, 0.5, 1. ]), 0.8333)
    """
    is_positive = targets >= 0.5
    if not is_positive.any():
        return None
    order = np.argsort(-scores, kind="stable")
    sorted_scores = scores[order]
    last_of_ties = np.flatnonzero(np.append(np.diff(sorted_scores) != 0, True))
    true_positives = np.cumsum(is_positive[order])[last_of_ties]
    return PrecisionRecallCurve(
        scores=sorted_scores[last_of_ties],
        precision=true_positives / (last_of_ties + 1),
        recall=true_positives / is_positive.sum(),
    )


def select_labels_by_average_precision(average_precision: Array, n_positives: Array) -> list[int]:
    """Return up to five labels, evenly spaced in the order of their average precision.

    The labels with the highest, the median and the lowest average precision are included. Labels
    with fewer than five positives are left out, if at least five other labels exist.

    Args:
        average_precision: Average precision of each label, NaN if undefined, ``(c,)``.
        n_positives: Number of known positives of each label, ``(c,)``.

    Returns:
        Columns of the labels, highest average precision first.
    """
    columns: ColumnIndices = np.flatnonzero(~np.isnan(average_precision))
    frequent = columns[n_positives[columns] >= MIN_POSITIVES]
    columns = frequent if len(frequent) >= MAX_CURVES else columns
    ranking = columns[np.argsort(-average_precision[columns], kind="stable")]
    n_shown = min(len(ranking), MAX_CURVES)
    places = np.linspace(0, max(len(ranking) - 1, 0), n_shown).round().astype(int)
    return [int(column) for column in ranking[places]]


def precision_recall_as_json(
    names: Sequence[str], scores: Array, targets: Array, known: Flags, average_precision: Array
) -> dict[str, Any]:
    """Return the precision at recall 1 %, 2 %, …, 100 %, of all decisions and of some labels.

    If no decision is positive, the precision of all decisions is None.

    Args:
        names: Labels, length c.
        scores: Probabilities or scores, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        average_precision: Average precision of each label, NaN if undefined, ``(c,)``.
    """
    pooled = precision_recall_curve(scores[known], targets[known])
    curves = precision_recall_curves_of_labels(scores, targets, known, average_precision)
    return {
        "recall": RECALL_LEVELS,
        "precision": None if pooled is None else pooled.precision_at_recall(RECALL_LEVELS),
        "precision_per_label": {
            names[column]: curve.precision_at_recall(RECALL_LEVELS) for column, curve in curves
        },
    }


def precision_recall_curves_of_labels(
    scores: Array, targets: Array, known: Flags, average_precision: Array
) -> list[tuple[int, PrecisionRecallCurve]]:
    """Return column and curve of up to five labels, highest average precision first.

    The labels are those of `select_labels_by_average_precision`.

    Args:
        scores: Probabilities or scores, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        average_precision: Average precision of each label, NaN if undefined, ``(c,)``.
    """
    n_positives = ((targets >= 0.5) & known).sum(axis=0)
    columns = select_labels_by_average_precision(average_precision, n_positives)
    curves = []
    for column in columns:
        rows = known[:, column]
        curve = precision_recall_curve(scores[rows, column], targets[rows, column])
        if curve is not None:
            curves.append((column, curve))
    return curves
