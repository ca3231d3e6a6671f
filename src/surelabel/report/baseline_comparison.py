"""Compare the rankings and predicted labels of a recognizer and of its zero-shot baseline."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.decisions import expected_count_operating_point, record_validation
from surelabel.evaluation import (
    LabelCooccurrence,
    LabelCounts,
    count_labels_per_image,
    measure_cooccurrence,
)
from surelabel.metrics import RANKING
from surelabel.records import Predictions

HALF = 0.5  # probability threshold of a positive decision
BASELINE, RECOGNIZER, GROUND_TRUTH = "zero-shot baseline", "this recognizer", "ground truth"
WITH_ARTICLE = {BASELINE: "the zero-shot baseline", RECOGNIZER: "this recognizer"}
RANKING_METRICS = ("mean_average_precision", "mean_average_precision_per_image")


@dataclass(frozen=True)
class ThresholdedLabels:
    """Labels predicted at the threshold that yields the expected number of labels.

    Attributes:
        threshold: Probability threshold, in [0, 1]. At this threshold, the number of predicted
            labels is closest to the sum of all probabilities.
        counts: Number of expected, predicted and positive labels of each image.
        cooccurrence: Fraction of images with both labels, for each pair of labels.
        precision: Fraction of the predicted labels with known targets that are positive. If there
            is no such label, the precision is NaN.
        labels_above_half: Mean number of labels per image with a known target and a probability of
            50 % or more.
    """

    threshold: float
    counts: LabelCounts
    cooccurrence: LabelCooccurrence
    precision: float
    labels_above_half: float


def predictions_for_baseline_comparison(
    predictions: Predictions, baseline: Predictions | None
) -> dict[str, Predictions]:
    """Return the predictions of the recognizer and, if available, of the zero-shot baseline."""
    return ({} if baseline is None else {BASELINE: baseline}) | {RECOGNIZER: predictions}


def threshold_labels_for_baseline_comparison(
    sources: Mapping[str, Predictions], targets: Array, known: Flags
) -> dict[str, ThresholdedLabels]:
    """Return the labels that each calibrated source (recognizer or baseline) predicts.

    Args:
        sources: Mapping from source (recognizer or baseline) to predictions.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.

    Returns:
        Mapping from source (recognizer or baseline) to predicted labels. If the recognizer is not
        calibrated, the mapping is empty.
    """
    if sources[RECOGNIZER].calibration is None:
        return {}
    return {
        source: _threshold_baseline_comparison_labels(predictions, targets, known)
        for source, predictions in sources.items()
        if predictions.calibration is not None
    }


def _threshold_baseline_comparison_labels(
    predictions: Predictions, targets: Array, known: Flags
) -> ThresholdedLabels:
    probabilities, logits = predictions.probabilities, predictions.logits
    assert logits is not None  # calibrated predictions have logits
    record = record_validation(logits, probabilities, known)
    threshold = float(expected_count_operating_point(record).values[0])
    is_predicted = known & (probabilities >= threshold)
    return ThresholdedLabels(
        threshold=threshold,
        counts=count_labels_per_image(probabilities, targets, known, threshold=threshold),
        cooccurrence=measure_cooccurrence(probabilities, targets, known, threshold=threshold),
        precision=float(targets[is_predicted].mean()) if is_predicted.any() else float("nan"),
        labels_above_half=float((known & (probabilities >= HALF)).sum(axis=1).mean()),
    )


def baseline_comparison_ranking_metrics(
    sources: Mapping[str, Predictions], targets: Array, known: Flags
) -> dict[str, dict[str, float]]:
    """Compute the ranking metrics of each source of predictions (recognizer or baseline).

    Args:
        sources: Mapping from source (recognizer or baseline) to predictions.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.

    Returns:
        Mapping from metric to a mapping from source to metric value.
    """
    return {
        metric: {
            source: RANKING[metric](predictions.scores.astype(np.float64), targets, known)
            for source, predictions in sources.items()
        }
        for metric in RANKING_METRICS
    }


def baseline_comparison_pairs_per_image(shares: Array) -> float:
    """Return the mean number of pairs of labels per image.

    Args:
        shares: Fraction of images with both labels of a pair, ``(c, c)``. If the fraction of a pair
            is unknown, the value is NaN and the pair is not counted.

    Example:
        >>> shares = np.array([[0.9, 0.5, 0.25], [0.5, 0.6, 0.0], [0.25, 0.0, 0.3]])
        >>> baseline_comparison_pairs_per_image(shares)
        0.75
    """
    return float(np.nansum(np.triu(shares, k=1)))
