"""Select one threshold per label, and estimate its expected precision and recall."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.decisions.validation_record import ValidationRecord
from surelabel.errors import ConfigError, InputError


@dataclass(frozen=True)
class Thresholds:
    """Probability threshold of each label, with its expected precision and recall.

    Attributes:
        values: Thresholds in [0, 1], ``(c,)``. A label with threshold 1 is never predicted. If a
            label does not reach the operating point, its threshold is 1, except if one threshold is
            used for all labels.
        precision: Expected precision of each label, ``(c,)``. At threshold 1, the value is NaN.
        recall: Expected recall of each label, ``(c,)``. If the recall cannot be estimated, the
            value is NaN.
        is_reached: Whether each label reaches the operating point, for example a precision of 90 %,
            ``(c,)``. A label that reaches the operating point has a known positive and an expected
            recall above 0, and is predicted for at least one image of the validation record.
        support: Number of known positives of each label, ``(c,)``.
    """

    values: Array
    precision: Array
    recall: Array
    is_reached: Flags
    support: Array

    def predict(self, probabilities: npt.ArrayLike) -> Flags:
        """Return True where a probability ``(n, c)`` reaches the threshold of its label.

        Raises:
            InputError: If the number of columns is not the number of thresholds.
        """
        p = np.asarray(probabilities, dtype=np.float64)
        if p.ndim != 2 or p.shape[1] != self.values.size:
            raise InputError(
                f"probabilities must have one column per label, {self.values.size}; "
                f"got shape {p.shape}. Use the labels of the validation record."
            )
        flags: Flags = (p >= self.values) & (self.values < 1)
        return flags


def precision_recall_at_label_thresholds(
    record: ValidationRecord, shrinkage: float
) -> tuple[Array, Array]:
    """Return the expected precision and recall of each label at each threshold, ``(c, g)``.

        precision = (tp + lift · t + shrinkage · lift · (expected_tp + t) / (predicted + 1))
                    / (predicted + 1 + shrinkage)
        recall    = (tp + shrinkage · expected_recall) / (support + shrinkage)

    Here t is the threshold. The symbols tp, predicted and support are the observed numbers of true
    positives, predicted labels and known positives. The calibrated probabilities predict the number
    of true positives, expected_tp, and the recall, expected_recall. The observed counts are shrunk
    towards expected_tp and expected_recall. The precision includes one additional prediction with
    probability t. Without the additional prediction, the precision would be almost constant between
    two observed probabilities of the label. The lift is the ratio of observed to expected true
    positives of all labels at the threshold, at most 1.

    Args:
        record: Validation record of the recognizer.
        shrinkage: Weight of the expected counts, as a number of observations, >= 0.

    Returns:
        Precision and recall of c labels at g thresholds, each ``(c, g)``. Undefined values are NaN.

    Raises:
        ConfigError: If ``shrinkage`` is negative or not finite.
    """
    if not 0 <= shrinkage < np.inf:
        raise ConfigError(f"shrinkage must be a finite number of at least 0; got {shrinkage}.")
    expected = record.expected_true_positives
    expected_of_all_labels = expected.sum(axis=0)
    lift = np.minimum(
        _label_threshold_ratio(record.true_positives.sum(axis=0), expected_of_all_labels), 1
    )
    n_predicted = record.predicted_positives + 1
    expected_precision = lift * (expected + record.thresholds) / n_predicted
    numerator = record.true_positives + lift * record.thresholds + shrinkage * expected_precision
    precision = numerator / (n_predicted + shrinkage)
    precision[:, -1] = np.nan  # no label is predicted at the last threshold
    expected_recall = _label_threshold_ratio(expected, expected[:, :1])
    expected_recall = np.where(
        np.isnan(expected_recall),
        _label_threshold_ratio(expected_of_all_labels, expected_of_all_labels[:1]),
        expected_recall,
    )
    recall = _label_threshold_ratio(
        record.true_positives + shrinkage * expected_recall, record.support[:, None] + shrinkage
    )
    return precision, recall


def select_label_thresholds(
    record: ValidationRecord,
    precision: Array,
    recall: Array,
    index: npt.NDArray[np.intp],
    is_sufficient: Flags,
) -> Thresholds:
    """Return the thresholds at the given indices, or 1 where the operating point is not reached.

    A label reaches the operating point if its threshold is sufficient, and if the label has a known
    positive and an expected recall above 0, and is predicted for at least one image of the record.

    Args:
        record: Validation record of c labels with g thresholds.
        precision: Expected precision, ``(c, g)``.
        recall: Expected recall, ``(c, g)``.
        index: Index of the threshold of each label, ``(c,)``.
        is_sufficient: Whether each label has the required precision, recall or F1 at its threshold,
            ``(c,)``.
    """
    rows = np.arange(len(record.support))
    is_reached: Flags = is_sufficient & _is_label_predicted(
        record, record.predicted_positives[rows, index], recall[rows, index]
    )
    index = np.where(is_reached, index, record.thresholds.size - 1)
    return Thresholds(
        values=record.thresholds[index],
        precision=precision[rows, index],
        recall=recall[rows, index],
        is_reached=is_reached,
        support=record.support,
    )


def apply_common_threshold(
    record: ValidationRecord, precision: Array, recall: Array, threshold: float
) -> Thresholds:
    """Return one threshold for all labels, with the expected precision and recall of each label.

    The threshold of a label that does not reach the operating point is not changed. Between two
    thresholds of the record, the precision and recall are those at the lower threshold. A label
    reaches the operating point only if it is predicted for an image at the upper threshold.

    Args:
        record: Validation record of c labels with g thresholds.
        precision: Expected precision, ``(c, g)``.
        recall: Expected recall, ``(c, g)``.
        threshold: Threshold of all labels, in [0, 1].
    """
    lower = np.searchsorted(record.thresholds, threshold, side="right") - 1
    upper = np.searchsorted(record.thresholds, threshold, side="left")
    return Thresholds(
        values=np.full(len(record.support), threshold),
        precision=precision[:, lower],
        recall=recall[:, lower],
        is_reached=_is_label_predicted(
            record, record.predicted_positives[:, upper], recall[:, lower]
        ),
        support=record.support,
    )


def _is_label_predicted(record: ValidationRecord, predicted: Array, recall: Array) -> Flags:
    """Return whether a label has a positive, is predicted, and has a recall above 0, ``(c,)``.

    Args:
        record: Validation record of c labels.
        predicted: Number of images for which each label is predicted, ``(c,)``.
        recall: Expected recall of each label, ``(c,)``. NaN is not above 0.
    """
    flags: Flags = (record.support > 0) & (predicted > 0) & (recall > 0)
    return flags


def _label_threshold_ratio(numerator: Array, denominator: Array) -> Array:
    """Return ``numerator / denominator``, or NaN if the denominator is 0."""
    undefined = np.full(numerator.shape, np.nan)
    is_defined = np.broadcast_to(denominator > 0, numerator.shape)
    ratio: Array = np.divide(numerator, denominator, out=undefined, where=is_defined)
    return ratio
