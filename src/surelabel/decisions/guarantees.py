"""Select thresholds with a distribution-free bound on the risk of new images (risk control)."""

from collections.abc import Callable
from math import ceil, inf

import numpy as np

from surelabel.arrays import ColumnIndices, Flags
from surelabel.decisions.bentkus import ROUNDING, bentkus_p_values, hoeffding_sample_size
from surelabel.decisions.fixed_sequence import (
    count_valid_before_failure,
    lowest_fixed_sequence_index,
)
from surelabel.decisions.guarantee_result import (
    Guarantee,
    RiskDescription,
    build_failed_guarantee_result,
    build_guarantee_result,
    format_guarantee_result_percent,
)
from surelabel.decisions.input_validation import check_decision_setting_fraction
from surelabel.decisions.validation_record import ValidationRecord

WRONG = RiskDescription("the labels predicted for an image are wrong", "a predicted label")
MISSED = RiskDescription("the positive labels of an image are missed", "a positive label")
PRIOR_IMAGES = 10  # images with half the allowed risk, added when the sample size is estimated
MIN_LABELS_PER_IMAGE = 0.1  # fewest predicted labels per image at a valid threshold
START_SHARES = (0.4, 0.8)  # a sequence of tests starts at the threshold 1 - share * level


def at_most_wrong(
    record: ValidationRecord, *, level: float = 0.1, confidence: float = 0.9
) -> Guarantee:
    """Return the lowest threshold that bounds the fraction of wrong labels among predicted labels.

    The risk is the fraction of wrong labels among the predicted labels of an image, averaged over
    images with at least one predicted label. Two sequences of tests start at the lowest thresholds
    of the record that are at least 1 - 0.4 · ``level`` and 1 - 0.8 · ``level``. They continue with
    lower thresholds and end at the first failed test. A higher start has a lower risk, and a lower
    start has more images. Each sequence tests at half of the error 1 - ``confidence``. The lowest
    valid threshold of both sequences is returned. The second sequence tests at the whole error in
    two cases:

    - The first sequence has reached the start of the second sequence.
    - The threshold has so few images with a predicted label that no test at half of the error can
      succeed, even without a wrong label.

    Args:
        record: Validation record of the recognizer on labelled images.
        level: Upper bound of the mean fraction of wrong labels, in (0, 1).
        confidence: Probability that the bound holds, over random samples of labelled images, in
            (0, 1).

    Returns:
        The guarantee with the lowest valid threshold. If no threshold is valid, or if the lowest
        valid threshold predicts fewer than 0.1 labels per image, the guarantee is not reached. Then
        ``images_needed`` estimates how many labelled images would be sufficient. The number of
        labels per image is estimated from known targets. The estimate assumes that further images
        have as many known targets.

    Raises:
        ConfigError: If ``level`` or ``confidence`` is outside (0, 1).

    Source:
        Angelopoulos, Bates, Candès, Jordan and Lei, Learn then Test: Calibrating Predictive
        Algorithms to Achieve Risk Control, arXiv:2110.01052: fixed sequence testing with multiple
        starts. Wiens, A fixed sequence Bonferroni procedure for testing multiple endpoints,
        Pharmaceutical Statistics 2, 2003: the second sequence takes over the error of the first.

    Differs:
        The p-values are those of Bentkus instead of Hoeffding-Bentkus. The test at the whole error
        for few images is not in the sources. The bound still holds, because the first sequence
        tests higher thresholds, which have at most as many images. None of the tests of the first
        sequence can therefore succeed.

        Each test leaves out the images without a predicted label. If these images had a risk of 0,
        they would compensate for the errors of other images. In the library MAPIE, these images
        have a risk of 1, so no threshold is valid if many images have no predicted label.

    Example:
        >>> from surelabel.decisions import record_validation
        >>> guarantee = at_most_wrong(record_validation([[3.0, -3.0]] * 30, [[1, 0]] * 30))
        >>> round(guarantee.threshold, 3), guarantee.risk, guarantee.images
        (0.052, 0.0, 30)
    """
    check_decision_setting_fraction("level", level)
    check_decision_setting_fraction("confidence", confidence)
    starts = np.searchsorted(record.thresholds[:-2], 1 - np.array(START_SHARES) * level)
    risk_sums, image_counts = record.false_discovery_sum, record.images_with_predictions
    p_values = bentkus_p_values(risk_sums, image_counts, level)
    index = lowest_fixed_sequence_index(p_values, image_counts, starts, level, 1 - confidence)
    labels_per_image = record.predicted_labels_per_image
    if index is not None and labels_per_image[index] >= MIN_LABELS_PER_IMAGE:
        images = int(image_counts[index])
        threshold, risk = float(record.thresholds[index]), float(risk_sums[index]) / images
        return build_guarantee_result(WRONG, threshold, risk, level, confidence, images)
    highest_useful = int(np.flatnonzero(labels_per_image >= MIN_LABELS_PER_IMAGE).max())
    note = index is not None and (
        f"Labels with probability >= {record.thresholds[index]:.5g} satisfy the bound, but there "
        f"are fewer than {MIN_LABELS_PER_IMAGE} such labels per image. "
    )
    weakest, images_needed = _estimate_images_needed(
        record, starts, highest_useful, level, confidence
    )
    images = int(image_counts[weakest])
    reason = (
        f"{format_guarantee_result_percent(float(risk_sums[weakest]) / max(images, 1))} of the "
        f"labels with probability >= {record.thresholds[weakest]:.3g} were wrong"
    )
    return build_failed_guarantee_result(
        WRONG, level, confidence, images, images_needed, reason, note or ""
    )


def _estimate_images_needed(
    record: ValidationRecord,
    starts: ColumnIndices,
    highest_useful: int,
    level: float,
    confidence: float,
) -> tuple[int, int | None]:
    """Return the threshold that needs the most images, and the number of labelled images needed.

    A sequence of tests must succeed from its start to a threshold with enough predicted labels. The
    result is that of the sequence that needs the fewest images.

    Args:
        record: Validation record of the recognizer on labelled images.
        starts: Index of the first threshold of each sequence, ``(2,)``.
        highest_useful: Index of the highest threshold that predicts enough labels per image.
        level: Upper bound of the mean fraction of wrong labels.
        confidence: Confidence of the bound.

    Returns:
        The index of the threshold, and the number of labelled images. If the risk, averaged with
        ten images of half the level, is not below the level in both sequences, the number is None.
    """
    image_counts = record.images_with_predictions
    risks = record.false_discovery_sum + PRIOR_IMAGES * level / 2
    risks = risks / (image_counts + PRIOR_IMAGES)
    sizes = [hoeffding_sample_size(risk, level, (1 + confidence) / 2) for risk in risks.tolist()]
    images_needed = np.array([inf if size is None else float(size) for size in sizes])
    images_needed *= record.images / np.maximum(image_counts, 1)
    sequences = [np.arange(min(start, highest_useful), start + 1) for start in starts.tolist()]
    weakest = [int(s[np.lexsort((risks[s], images_needed[s]))[-1]]) for s in sequences]
    index = min(weakest, key=lambda i: (float(images_needed[i]), float(risks[i])))
    number = float(images_needed[index])
    return index, None if number == inf else max(ceil(number), record.images + 1)


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
        not reached. Then ``images_needed`` estimates how many labelled images would be sufficient.

    Raises:
        ConfigError: If ``level`` or ``confidence`` is outside (0, 1).

    Source:
        Bates, Angelopoulos, Lei, Malik and Jordan, Distribution-Free, Risk-Controlling Prediction
        Sets, Journal of the ACM 2021, arXiv:2101.02703.

    Differs:
        The bound is that of Bentkus instead of Hoeffding-Bentkus. Images without a positive label
        are left out. The library MAPIE raises an error for an image without a positive label.

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
    p_values = bentkus_p_values(risk_sums, image_counts, level)
    sample_size = hoeffding_sample_size(0.0, level, confidence)
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
        without a positive label. MAPIE requires a risk below the level. Here, as in the source, the
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
    images, n_valid = record.images_with_positives, count_valid_before_failure(is_valid)
    if n_valid:
        threshold = float(record.thresholds[n_valid - 1])
        risk = float(record.false_negative_sum[n_valid - 1]) / images
        return build_guarantee_result(MISSED, threshold, risk, level, confidence, images)
    images_needed = sample_size and ceil(sample_size * record.images / max(images, 1))
    return build_failed_guarantee_result(MISSED, level, confidence, images, images_needed, "")


GUARANTEES: dict[str, Callable[..., Guarantee]] = {
    "at_most_missed": at_most_missed,
    "at_most_missed_on_average": at_most_missed_on_average,
    "at_most_wrong": at_most_wrong,
}
