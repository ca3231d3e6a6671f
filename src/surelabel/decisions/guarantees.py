"""Risk control: thresholds with a distribution-free bound on the risk of exchangeable images."""

from collections.abc import Callable
from math import ceil

import numpy as np

from surelabel.arrays import Flags
from surelabel.decisions.guarantee_result import (
    Guarantee,
    RiskDescription,
    build_failed_guarantee_result,
    build_guarantee_result,
    format_guarantee_result_percent,
)
from surelabel.decisions.hoeffding_bentkus import (
    ROUNDING,
    hoeffding_bentkus_p_values,
    hoeffding_bentkus_sample_size,
)
from surelabel.decisions.input_validation import check_decision_setting_fraction
from surelabel.decisions.validation_record import ValidationRecord

WRONG = RiskDescription("the labels predicted for an image are wrong", "a predicted label")
MISSED = RiskDescription("the positive labels of an image are missed", "a positive label")
PRIOR_IMAGES = 10  # images with half the allowed risk, added when the sample size is estimated


def at_most_wrong(
    record: ValidationRecord, *, level: float = 0.1, confidence: float = 0.9
) -> Guarantee:
    """Return the lowest threshold that bounds the fraction of wrong labels among predicted labels.

    The risk is the fraction of wrong labels among the predicted labels of an image, averaged over
    images with at least one predicted label. Thresholds are tested in decreasing order, starting
    near 1 - ``level``, where calibrated probabilities satisfy the bound. The result is the last
    threshold before the first failed test.

    Args:
        record: Validation record of the recognizer on labelled images.
        level: Upper bound of the mean fraction of wrong labels, in (0, 1).
        confidence: Probability that the bound holds, over random samples of labelled images, in
            (0, 1).

    Returns:
        The guarantee with the lowest valid threshold. If no threshold is valid, the guarantee is
        not reached, and ``images_needed`` estimates how many labelled images would be sufficient.

    Raises:
        ConfigError: If ``level`` or ``confidence`` is outside (0, 1).

    Source:
        Angelopoulos, Bates, Candès, Jordan and Lei, Learn then Test: Calibrating Predictive
        Algorithms to Achieve Risk Control, arXiv:2110.01052: Hoeffding-Bentkus p-values and fixed
        sequence testing.

    Differs:
        Each test leaves out the images without a predicted label. If these images had a risk of 0,
        they would hide the errors of other images. In the library MAPIE, these images have a risk
        of 1, so no threshold is valid if many images have no predicted label.

    Example:
        >>> from surelabel.decisions import record_validation
        >>> guarantee = at_most_wrong(record_validation([[3.0, -3.0]] * 30, [[1, 0]] * 30))
        >>> round(guarantee.threshold, 3), guarantee.risk, guarantee.images
        (0.052, 0.0, 30)
    """
    check_decision_setting_fraction("level", level)
    check_decision_setting_fraction("confidence", confidence)
    start = int(np.searchsorted(record.thresholds, 1 - level))
    indices = np.arange(start, -1, -1)
    risk_sums, image_counts = record.false_discovery_sum, record.images_with_predictions
    p_values = hoeffding_bentkus_p_values(risk_sums[indices], image_counts[indices], level)
    n_valid = _count_valid_guarantee_thresholds(p_values <= 1 - confidence)
    index = indices[max(n_valid - 1, 0)]
    risk_sum, images = float(risk_sums[index]), int(image_counts[index])
    if n_valid:
        threshold = float(record.thresholds[index])
        return build_guarantee_result(
            WRONG, threshold, risk_sum / images, level, confidence, images
        )
    smoothed_risk = (risk_sum + PRIOR_IMAGES * level / 2) / (images + PRIOR_IMAGES)
    sample_size = hoeffding_bentkus_sample_size(smoothed_risk, level, confidence)
    images_needed = sample_size and ceil(sample_size * record.images / max(images, 1))
    reason = (
        f"{format_guarantee_result_percent(risk_sum / max(images, 1))} of the labels with "
        f"probability >= {record.thresholds[start]:.3g} were wrong"
    )
    return build_failed_guarantee_result(WRONG, level, confidence, images, images_needed, reason)


def at_most_missed(
    record: ValidationRecord, *, level: float = 0.2, confidence: float = 0.9
) -> Guarantee:
    """Return the highest threshold that bounds the fraction of missed labels with high probability.

    The risk is the fraction of the positive labels of an image that are not predicted, averaged
    over images with a positive label. Thresholds are tested in increasing order from 0, at which no
    label is missed. The result is the last threshold before the first failed test.

    Args:
        record: Validation record of the recognizer on labelled images.
        level: Upper bound of the mean fraction of missed labels, in (0, 1).
        confidence: Probability that the bound holds, over random samples of labelled images, in
            (0, 1).

    Returns:
        The guarantee with the highest valid threshold. If no threshold is valid, the guarantee is
        not reached, and ``images_needed`` estimates how many labelled images would be sufficient.

    Raises:
        ConfigError: If ``level`` or ``confidence`` is outside (0, 1).

    Source:
        Bates, Angelopoulos, Lei, Malik and Jordan, Distribution-Free, Risk-Controlling Prediction
        Sets, Journal of the ACM 2021, arXiv:2101.02703, with the Hoeffding-Bentkus bound.

    Differs:
        Images without a positive label are left out. The library MAPIE raises an error for an image
        without a positive label.

    Example:
        >>> from surelabel.decisions import record_validation
        >>> guarantee = at_most_missed(record_validation([[3.0, -3.0]] * 30, [[1, 0]] * 30))
        >>> round(guarantee.threshold, 3), guarantee.risk, guarantee.images
        (0.953, 0.0, 30)
    """
    check_decision_setting_fraction("level", level)
    check_decision_setting_fraction("confidence", confidence)
    risk_sums = record.false_negative_sum
    image_counts = np.full(risk_sums.shape, float(record.images_with_positives))
    p_values = hoeffding_bentkus_p_values(risk_sums, image_counts, level)
    sample_size = hoeffding_bentkus_sample_size(0.0, level, confidence)
    return _guarantee_at_most_missed(
        record, p_values <= 1 - confidence, level, confidence, sample_size
    )


def at_most_missed_on_average(record: ValidationRecord, *, level: float = 0.2) -> Guarantee:
    """Return the highest threshold that bounds the fraction of missed labels in expectation.

        (sum of risks + 1) / (n + 1) <= level

    Here n is the number of labelled images with a positive label. The risk of an image is the
    fraction of its positive labels that are not predicted. The bound holds in expectation over
    random samples of labelled images, not with a confidence for the given sample. A bound in
    expectation needs fewer labelled images and results in a higher threshold.

    Args:
        record: Validation record of the recognizer on labelled images.
        level: Upper bound of the mean fraction of missed labels, in (0, 1).

    Returns:
        The guarantee with the highest valid threshold. If no threshold is valid, the guarantee is
        not reached, and ``images_needed`` is the number of labelled images that would be
        sufficient.

    Raises:
        ConfigError: If ``level`` is outside (0, 1).

    Source:
        Angelopoulos, Bates, Fisch, Lei and Schuster, Conformal Risk Control, ICLR 2024,
        arXiv:2208.02814.

    Differs:
        Images without a positive label are left out. The library MAPIE raises an error for an image
        without a positive label. MAPIE requires a risk below the level; here, as in the source, the
        risk may be equal to the level.

    Example:
        >>> from surelabel.decisions import record_validation
        >>> record = record_validation([[3.0, -3.0]] * 30, [[1, 0]] * 30)
        >>> guarantee = at_most_missed_on_average(record)
        >>> round(guarantee.threshold, 3), guarantee.risk, guarantee.images
        (0.953, 0.0, 30)
    """
    check_decision_setting_fraction("level", level)
    is_valid = (record.false_negative_sum + 1) / (record.images_with_positives + 1) <= level
    return _guarantee_at_most_missed(record, is_valid, level, None, ceil(1 / level - 1 - ROUNDING))


def _guarantee_at_most_missed(
    record: ValidationRecord,
    is_valid: Flags,
    level: float,
    confidence: float | None,
    sample_size: int | None,
) -> Guarantee:
    """Return the guarantee with the highest threshold up to which all thresholds are valid.

    Args:
        record: Validation record of the recognizer on labelled images.
        is_valid: Whether the bound holds at each of the g thresholds, ``(g,)``.
        level: Upper bound of the mean fraction of missed labels.
        confidence: Confidence of the bound. If None, the bound holds in expectation.
        sample_size: Number of images with a positive label that would be sufficient.
    """
    images, n_valid = record.images_with_positives, _count_valid_guarantee_thresholds(is_valid)
    if n_valid:
        threshold = float(record.thresholds[n_valid - 1])
        risk = float(record.false_negative_sum[n_valid - 1]) / images
        return build_guarantee_result(MISSED, threshold, risk, level, confidence, images)
    images_needed = sample_size and ceil(sample_size * record.images / max(images, 1))
    return build_failed_guarantee_result(MISSED, level, confidence, images, images_needed, "")


def _count_valid_guarantee_thresholds(flags: Flags) -> int:
    """Return the number of valid thresholds before the first threshold that is not valid."""
    return int(flags.size if flags.all() else flags.argmin())


GUARANTEES: dict[str, Callable[..., Guarantee]] = {
    "at_most_missed": at_most_missed,
    "at_most_missed_on_average": at_most_missed_on_average,
    "at_most_wrong": at_most_wrong,
}
