"""Compute thresholds, and measure their precision and recall on evaluated images."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.calibration import assign_folds
from surelabel.decisions import (
    OPERATING_POINTS,
    Thresholds,
    ValidationRecord,
    record_validation,
)
from surelabel.evaluation import Evaluation
from surelabel.metrics import ConfidenceInterval
from surelabel.report.ratio_intervals import ratio_of_sums_intervals
from surelabel.tables import configure_table_entry

FOLDS, SEED = 5, 0  # settings of cross-fitting, if there is no validation record
MIN_IMAGES = 20  # fewest images with a known target for cross-fitting
POINTS: tuple[tuple[str, str, str, dict[str, float]], ...] = (
    # option of ``surelabel tag``, description, operating point and its settings
    ("--threshold 0.5", "Fixed threshold of 50 %", "cost", {"miss_cost": 1.0}),
    ("--precision 0.8", "Precision of at least 80 %", "precision", {"at_least": 0.8}),
    ("--precision 0.9", "Precision of at least 90 %", "precision", {"at_least": 0.9}),
    ("--recall 0.8", "Recall of at least 80 %", "recall", {"at_least": 0.8}),
    ("--recall 0.9", "Recall of at least 90 %", "recall", {"at_least": 0.9}),
    ("--best-f1", "Highest F1 of each label", "f1", {}),
    ("--expected-count", "As many predicted as positive labels", "expected_count", {}),
    ("--cost-of-miss 5", "A missed label costs as much as five false positives", "cost", {}),
)


@dataclass(frozen=True)
class MeasuredOperatingPoint:
    """Operating point with its precision and recall on evaluated images of c labels.

    Attributes:
        option: Option of ``surelabel tag`` that selects the operating point.
        description: Description of the operating point, such as ``Recall of at least 80 %``.
        thresholds: Threshold of each label, with its expected precision and recall.
        precision: Precision of each label on the evaluated images, ``(c,)``. If a label is never
            predicted, its precision is NaN.
        recall: Recall of each label on the evaluated images, ``(c,)``. If a label has no known
            positive, its recall is NaN.
        pooled_precision: Precision over the decisions of all labels, with its 95 % interval.
        pooled_recall: Recall over the decisions of all labels, with its 95 % interval.
        labels_per_image: Mean number of predicted labels of an image, among labels with known
            targets.
    """

    option: str
    description: str
    thresholds: Thresholds
    precision: Array
    recall: Array
    pooled_precision: ConfidenceInterval
    pooled_recall: ConfidenceInterval
    labels_per_image: float

    def mean_over_labels(self, metric: str) -> tuple[float, float]:
        """Return the expected and the measured mean of a metric over labels, or NaN if undefined.

        Both means are computed over the labels that reach the operating point, and for which the
        metric is defined on the evaluated images.

        Args:
            metric: ``precision`` or ``recall``.
        """
        expected, measured = getattr(self.thresholds, metric), getattr(self, metric)
        is_defined = self.thresholds.is_reached & ~np.isnan(expected) & ~np.isnan(measured)
        if not is_defined.any():
            return float("nan"), float("nan")
        return float(expected[is_defined].mean()), float(measured[is_defined].mean())


@dataclass(frozen=True)
class OperatingPointMeasurements:
    """Operating points of a report.

    Attributes:
        points: Operating points with their precision and recall on the evaluated images.
        n_record_images: Number of images that the thresholds are computed from.
        is_cross_fitted: Whether the thresholds are computed from the evaluated images. If True, the
            precision and recall of an image are measured at thresholds from other folds.
    """

    points: tuple[MeasuredOperatingPoint, ...]
    n_record_images: int
    is_cross_fitted: bool


def measure_operating_points(evaluation: Evaluation) -> OperatingPointMeasurements | None:
    """Return the operating points with their precision and recall on the evaluated images.

    The thresholds are computed from the validation record of the recognizer, as by ``surelabel
    tag``. Without a validation record, the thresholds are computed from the evaluated images.
    Precision and recall are then measured by cross-fitting, so that no image is evaluated at a
    threshold that was computed from its own targets.

    Args:
        evaluation: Evaluation of n images and c labels.

    Returns:
        The operating points, or None if the recognizer is not calibrated, or if there is no
        validation record and fewer than 20 evaluated images have a known target.
    """
    predictions = evaluation.predictions
    if predictions.calibration is None or predictions.logits is None:
        return None
    probabilities, record = predictions.probabilities, evaluation.validation_record
    if record is not None:
        return OperatingPointMeasurements(
            tuple(
                _measured_operating_point(
                    option,
                    description,
                    select(record),
                    select(record).predict(probabilities),
                    evaluation,
                )
                for option, description, select in _operating_point_functions()
            ),
            record.images,
            is_cross_fitted=False,
        )
    if evaluation.known.any(axis=1).sum() < MIN_IMAGES:
        return None
    return _cross_fitted_operating_points(evaluation)


def _operating_point_functions() -> Iterator[
    tuple[str, str, Callable[[ValidationRecord], Thresholds]]
]:
    for option, description, name, settings in POINTS:
        yield option, description, configure_table_entry(OPERATING_POINTS, name, **settings)


def _cross_fitted_operating_points(evaluation: Evaluation) -> OperatingPointMeasurements:
    """Return operating points whose thresholds are computed from the evaluated images."""
    predictions, targets, known = evaluation.predictions, evaluation.targets, evaluation.known
    logits, probabilities = predictions.logits, predictions.probabilities
    assert logits is not None  # checked by the caller
    fold_of_image = assign_folds(known, FOLDS, np.random.default_rng(SEED))
    rows_of_folds = [np.flatnonzero(fold_of_image == fold) for fold in range(FOLDS)]
    records = [record_validation(logits[r], targets[r], known[r]) for r in rows_of_folds]
    points = []
    for option, description, select in _operating_point_functions():
        is_predicted = np.zeros(known.shape, dtype=bool)
        for fold, rows in enumerate(rows_of_folds):
            others = _sum_of_records([r for f, r in enumerate(records) if f != fold])
            is_predicted[rows] = select(others).predict(probabilities[rows])
        thresholds = select(_sum_of_records(records))
        points.append(
            _measured_operating_point(option, description, thresholds, is_predicted, evaluation)
        )
    n_images = _sum_of_records(records).images
    return OperatingPointMeasurements(tuple(points), n_images, is_cross_fitted=True)


def _sum_of_records(records: list[ValidationRecord]) -> ValidationRecord:
    first, *others = records
    return sum(others, start=first)


def _measured_operating_point(
    option: str,
    description: str,
    thresholds: Thresholds,
    is_predicted: Flags,
    evaluation: Evaluation,
) -> MeasuredOperatingPoint:
    known = evaluation.known
    is_predicted = is_predicted & known
    positives = np.where(known, evaluation.targets, 0.0)
    true_positives = np.where(is_predicted, positives, 0.0)
    pooled_precision, pooled_recall = ratio_of_sums_intervals(
        np.repeat(true_positives.sum(axis=1)[:, None], 2, axis=1),
        np.stack([is_predicted.sum(axis=1), positives.sum(axis=1)], axis=1).astype(np.float64),
    )
    return MeasuredOperatingPoint(
        option=option,
        description=description,
        thresholds=thresholds,
        precision=_ratio_per_label(true_positives, is_predicted.astype(np.float64)),
        recall=_ratio_per_label(true_positives, positives),
        pooled_precision=pooled_precision,
        pooled_recall=pooled_recall,
        labels_per_image=float(is_predicted.sum(axis=1).mean()),
    )


def _ratio_per_label(numerator: Array, denominator: Array) -> Array:
    """Return the ratio of the sums over images of each label, or NaN, ``(c,)``."""
    total = denominator.sum(axis=0)
    undefined = np.full(total.shape, np.nan)
    ratio: Array = np.divide(numerator.sum(axis=0), total, out=undefined, where=total > 0)
    return ratio
