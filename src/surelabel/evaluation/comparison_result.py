"""This module defines the result of a paired comparison of two sets of predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from surelabel.arrays import Array, Flags
from surelabel.evaluation.evaluation_result import HEADLINE_METRICS
from surelabel.metrics import ConfidenceInterval
from surelabel.summaries import Summary, format_summary_value

FALSE_DISCOVERY_RATE = 0.05  # false discovery rate of labels that are marked as different


@dataclass(frozen=True)
class MetricDifference:
    """Value of a metric for two sets of predictions, and their difference.

    Attributes:
        first: Value of the first predictions (A).
        second: Value of the second predictions (B).
        difference: B minus A with its paired 95 % bootstrap interval.
    """

    first: float
    second: float
    difference: ConfidenceInterval


@dataclass(frozen=True, eq=False)
class LabelDifferences:
    """Values of a metric of each label for two sets of predictions. Undefined values are NaN.

    Attributes:
        first: Values of the first predictions (A), ``(c,)``.
        second: Values of the second predictions (B), ``(c,)``.
        difference: B minus A, ``(c,)``.
        low: Lower ends of the paired 95 % bootstrap intervals of the differences, ``(c,)``.
        high: Upper ends of the paired 95 % bootstrap intervals of the differences, ``(c,)``.
        adjusted_p_values: p-values of the differences, adjusted for the number of labels, ``(c,)``.
            The value of a label with too few positive or negative targets is NaN.
    """

    first: Array
    second: Array
    difference: Array
    low: Array
    high: Array
    adjusted_p_values: Array

    @property
    def is_different(self) -> Flags:
        """Return True for labels that differ at a false discovery rate of 5 %, ``(c,)``."""
        flags: Flags = self.adjusted_p_values <= FALSE_DISCOVERY_RATE  # False for NaN
        return flags


@dataclass(frozen=True, eq=False)
class Comparison:
    """Paired comparison of two sets of predictions, A and B, of the same annotated images.

    Attributes:
        first: Name of the first predictions (A).
        second: Name of the second predictions (B).
        first_calibration: Calibration of A, or None if A is uncalibrated.
        second_calibration: Calibration of B, or None if B is uncalibrated.
        names: Compared labels, length c.
        n_images: Number of compared images.
        n_positives: Number of positive targets of each label, ``(c,)``.
        metrics: Values and differences over all images and labels, by metric name. If A or B is
            uncalibrated, only ranking metrics are compared.
        labels: Values and differences of each label, by metric name.
        images_without_first: Number of annotated images without a prediction of A.
        images_without_second: Number of annotated images without a prediction of B.
        unannotated_images: Number of images with predictions and without annotations.
        labels_of_first_only: Labels of A that do not match exactly one label of B.
        labels_of_second_only: Labels of B that do not match exactly one label of A.
        unannotated_labels: Labels of A and B without a known target.
        resamples: Number of bootstrap resamples, which are the same for A and B.
        row_noun: Noun of the compared inputs: ``image``, or ``row`` of vectors.
    """

    first: str
    second: str
    first_calibration: str | None
    second_calibration: str | None
    names: Sequence[str]
    n_images: int
    n_positives: Array
    metrics: Mapping[str, MetricDifference]
    labels: Mapping[str, LabelDifferences]
    images_without_first: int
    images_without_second: int
    unannotated_images: int
    labels_of_first_only: Sequence[str]
    labels_of_second_only: Sequence[str]
    unannotated_labels: Sequence[str]
    resamples: int
    row_noun: str = "image"

    def __repr__(self) -> str:
        """Return the main metrics of A and B, and their differences with intervals."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    @property
    def is_calibrated(self) -> bool:
        """Return whether A and B are calibrated, so that probability metrics are compared."""
        return self.first_calibration is not None and self.second_calibration is not None

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as a dictionary for JSON, in which undefined metrics are NaN."""
        return {
            "first": {"name": self.first, "calibration": self.first_calibration},
            "second": {"name": self.second, "calibration": self.second_calibration},
            "images": self.n_images,
            "labels": len(self.names),
            "left_out": {
                "images_without_first": self.images_without_first,
                "images_without_second": self.images_without_second,
                "unannotated_images": self.unannotated_images,
                "labels_of_first_only": list(self.labels_of_first_only),
                "labels_of_second_only": list(self.labels_of_second_only),
                "unannotated_labels": list(self.unannotated_labels),
            },
            "resamples": self.resamples,
            "metrics": {
                name: {
                    "first": value.first,
                    "second": value.second,
                    "difference": asdict(value.difference),
                }
                for name, value in self.metrics.items()
            },
            "by_label": [
                {"label": label, "positives": int(self.n_positives[column])}
                | {name: values_of_label(value, column) for name, value in self.labels.items()}
                for column, label in enumerate(self.names)
            ],
        }

    def _summary(self) -> Summary:
        properties = {
            "first": self.first,
            "second": self.second,
            f"{self.row_noun}s": self.n_images,
            "labels": len(self.names),
        }
        header = ("metric", "first", "second", "second − first", "95 % interval")
        rows = []
        for name in HEADLINE_METRICS:
            if name in self.metrics:
                value = self.metrics[name]
                numbers = (value.first, value.second, value.difference.value)
                interval = f"{value.difference.low:.4g} to {value.difference.high:.4g}"
                rows.append((name, *map(format_summary_value, numbers), interval))
        return Summary("Comparison", properties, header, rows, len(rows))


def values_of_label(differences: LabelDifferences, column: int) -> dict[str, Any]:
    """Return the values of one label by attribute name, and whether the label is different.

    Args:
        differences: Values of a metric of each label.
        column: Column of the label.

    Example:
        >>> import numpy as np
        >>> half = np.array([0.5])
        >>> values_of_label(LabelDifferences(half, half, 0 * half, half, half, half), 0)["first"]
        0.5
    """
    values: dict[str, Any] = {
        name: float(array[column]) for name, array in vars(differences).items()
    }
    return values | {"is_different": bool(differences.is_different[column])}
