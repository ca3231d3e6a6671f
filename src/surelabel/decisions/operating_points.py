"""Select one threshold per label by precision, recall, F1, cost or count (operating points).

Thresholds do not change the probabilities.
"""

from collections.abc import Callable

import numpy as np

from surelabel.decisions.input_validation import check_decision_setting_fraction
from surelabel.decisions.label_thresholds import (
    Thresholds,
    apply_common_threshold,
    precision_recall_at_label_thresholds,
    select_label_thresholds,
)
from surelabel.decisions.validation_record import ValidationRecord
from surelabel.errors import ConfigError


def f1_operating_point(record: ValidationRecord, *, shrinkage: float = 10.0) -> Thresholds:
    """Return the threshold of each label that maximizes its expected F1.

    Args:
        record: Validation record of the recognizer on labelled images.
        shrinkage: Weight of the counts that the calibrated probabilities predict, as a number of
            observations, >= 0.

    Returns:
        The threshold of each label. If two thresholds have equal F1, the higher threshold is
        returned. A label without known positives does not reach the operating point.

    Raises:
        ConfigError: If ``shrinkage`` is negative or not finite.

    Source:
        Lipton, Elkan and Narayanaswamy, Optimal Thresholding of Classifiers to Maximize F1 Measure,
        ECML PKDD 2014, arXiv:1402.1892: for calibrated probabilities, the best threshold is half
        the best F1.

    Differs:
        The threshold is searched in the validation record, so the probabilities may be slightly
        miscalibrated. The observed counts are shrunk towards the counts that the calibrated
        probabilities predict. Without shrinkage, the recall of a label with two positives, and
        thus its threshold, would depend on only two positive images.

    Example:
        >>> from surelabel.decisions import record_validation
        >>> record = record_validation([[-1.0], [0.0], [1.0], [2.0]], [[0], [0], [1], [1]])
        >>> thresholds = f1_operating_point(record)
        >>> thresholds.values.round(3), thresholds.precision.round(3), thresholds.recall.round(3)
        (array([0.731]), array([0.811]), array([0.731]))
    """
    precisions, recalls = precision_recall_at_label_thresholds(record, shrinkage)
    total = precisions + recalls
    scores = np.divide(
        2 * precisions * recalls, total, out=np.full(total.shape, -1.0), where=total > 0
    )  # NaN is not above 0
    last_best = scores.shape[1] - 1 - np.argmax(scores[:, ::-1], axis=1)
    return select_label_thresholds(record, precisions, recalls, last_best, (scores > 0).any(axis=1))


def precision_operating_point(
    record: ValidationRecord, *, at_least: float = 0.9, shrinkage: float = 10.0
) -> Thresholds:
    """Return the lowest threshold of each label with the required expected precision.

    Args:
        record: Validation record of the recognizer on labelled images.
        at_least: Required precision, in (0, 1).
        shrinkage: Weight of the counts that the calibrated probabilities predict, as a number of
            observations, >= 0.

    Returns:
        The threshold of each label. The precision is an estimate. For a guarantee with a stated
        confidence, use ``at_most_wrong``. A label does not reach the operating point if its
        precision is too low at every threshold that a probability of the record reaches, or if it
        has no known positive.

    Raises:
        ConfigError: If ``at_least`` is outside (0, 1), or if ``shrinkage`` is negative or not
            finite.

    Source:
        None; ours. The thresholds are searched in the validation record, whose counts are shrunk
        towards the counts that the calibrated probabilities predict.

    Example:
        >>> from surelabel.decisions import record_validation
        >>> record = record_validation([[-1.0], [0.0], [1.0], [2.0]], [[0], [1], [0], [1]])
        >>> precision_operating_point(record, at_least=0.6).values.round(3)
        array([0.426])
    """
    check_decision_setting_fraction("at_least", at_least)
    precisions, recalls = precision_recall_at_label_thresholds(record, shrinkage)
    is_sufficient = precisions >= at_least  # False where NaN
    return select_label_thresholds(
        record, precisions, recalls, is_sufficient.argmax(axis=1), is_sufficient.max(axis=1)
    )


def recall_operating_point(
    record: ValidationRecord, *, at_least: float = 0.8, shrinkage: float = 10.0
) -> Thresholds:
    """Return the highest threshold of each label with the required expected recall.

    Args:
        record: Validation record of the recognizer on labelled images.
        at_least: Required recall, in (0, 1).
        shrinkage: Weight of the counts that the calibrated probabilities predict, as a number of
            observations, >= 0.

    Returns:
        The threshold of each label. If a threshold below 0.00034 is needed, the threshold is 0 and
        the label is always predicted. The recall is an estimate. For a guarantee with a stated
        confidence, use ``at_most_missed``. A label without known positives does not reach the
        operating point.

    Raises:
        ConfigError: If ``at_least`` is outside (0, 1), or if ``shrinkage`` is negative or not
            finite.

    Source:
        None; ours. The thresholds are searched in the validation record, whose counts are shrunk
        towards the counts that the calibrated probabilities predict.

    Example:
        >>> from surelabel.decisions import record_validation
        >>> record = record_validation([[-1.0], [0.0], [1.0], [2.0]], [[0], [1], [0], [1]])
        >>> recall_operating_point(record, at_least=0.9).values
        array([0.5])
    """
    check_decision_setting_fraction("at_least", at_least)
    precisions, recalls = precision_recall_at_label_thresholds(record, shrinkage)
    is_sufficient = recalls >= at_least
    last = is_sufficient.shape[1] - 1 - np.argmax(is_sufficient[:, ::-1], axis=1)
    return select_label_thresholds(record, precisions, recalls, last, is_sufficient.max(axis=1))


def cost_operating_point(
    record: ValidationRecord, *, miss_cost: float = 5.0, shrinkage: float = 10.0
) -> Thresholds:
    """Return the threshold that minimizes the expected cost of missed labels and false positives.

        predict where miss_cost · p >= 1 - p,   that is, p >= 1 / (1 + miss_cost)

    Here p is the calibrated probability of a label.

    Args:
        record: Validation record of the recognizer on labelled images. The record has no effect on
            the threshold. The expected precision and recall are those at the highest threshold of
            the record that is at most the returned threshold.
        miss_cost: Cost of a missed label relative to a false positive, above 0.
        shrinkage: Weight of the counts that the calibrated probabilities predict, as a number of
            observations, >= 0.

    Returns:
        One threshold for all labels. A label does not reach the operating point if it has no known
        positive, or if it is predicted for no image of the record at the threshold. The threshold
        of such a label is not changed, because the threshold still minimizes the expected cost.

    Raises:
        ConfigError: If ``miss_cost`` is not a finite number above 0, or if ``shrinkage`` is
            negative or not finite.

    Source:
        Elkan, The Foundations of Cost-Sensitive Learning, IJCAI 2001.

    Example:
        >>> from surelabel.decisions import record_validation
        >>> cost_operating_point(record_validation([[0.0, 1.0]], [[0, 1]]), miss_cost=4.0).values
        array([0.2, 0.2])
    """
    if not 0 < miss_cost < np.inf:
        raise ConfigError(f"miss_cost must be a finite number above 0; got {miss_cost}.")
    precisions, recalls = precision_recall_at_label_thresholds(record, shrinkage)
    return apply_common_threshold(record, precisions, recalls, 1 / (1 + miss_cost))


def expected_count_operating_point(
    record: ValidationRecord, *, shrinkage: float = 10.0
) -> Thresholds:
    """Return the threshold at which as many labels are predicted as are positive.

    At this threshold, the number of missed labels equals the number of false positives. The same
    threshold is used for all labels. If the targets of the record are probabilities, the number of
    predicted labels equals the expected number of positive labels.

    Args:
        record: Validation record, with observed targets or with probabilities as targets.
        shrinkage: Weight of the counts that the calibrated probabilities predict, as a number of
            observations, >= 0. The shrinkage changes the expected precision and recall, not the
            threshold.

    Returns:
        One threshold for all labels. If the numbers of predicted labels at two thresholds are
        equally close to the number of positives, the higher threshold is returned. If no label has
        a known positive, the threshold is 1. A label does not reach the operating point if it has
        no known positive, or if it is predicted for no image of the record at the threshold. The
        threshold of such a label is not changed, because the predictions of all labels are counted
        together.

    Raises:
        ConfigError: If ``shrinkage`` is negative or not finite.

    Source:
        None; ours: the break-even point of precision and recall over all images and labels.

    Example:
        >>> from surelabel.decisions import record_validation
        >>> record = record_validation([[-1.0], [0.0], [1.0], [2.0]], [[0], [1], [0], [1]])
        >>> expected_count_operating_point(record).values.round(3)
        array([0.731])
    """
    precisions, recalls = precision_recall_at_label_thresholds(record, shrinkage)
    n_positive, n_predicted = record.support.sum(), record.predicted_positives.sum(axis=0)
    nearest = n_predicted.size - 1 - np.argmin(np.abs(n_predicted - n_positive)[::-1])
    threshold = float(record.thresholds[nearest]) if n_positive > 0 else 1.0
    return apply_common_threshold(record, precisions, recalls, threshold)


OPERATING_POINTS: dict[str, Callable[..., Thresholds]] = {
    "cost": cost_operating_point,
    "expected_count": expected_count_operating_point,
    "f1": f1_operating_point,
    "precision": precision_operating_point,
    "recall": recall_operating_point,
}
