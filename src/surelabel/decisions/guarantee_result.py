"""Describe the result of risk control: one threshold for all labels with a bound on its risk."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Flags


@dataclass(frozen=True)
class Guarantee:
    """Threshold for all labels with an upper bound on a risk.

    The risk of an image is the fraction of its predicted labels that are wrong, or the fraction of
    its positive labels that are missed. The bound applies to the mean risk of new images from the
    same distribution as the labelled images.

    Attributes:
        threshold: Probability threshold in [0, 1]. If the guarantee is not reached, the value is 1,
            and no label is predicted.
        risk: Mean risk at the threshold on the labelled images. If the guarantee is not reached,
            the value is NaN.
        level: Upper bound of the mean risk.
        confidence: Probability that the bound holds, over random samples of labelled images. If
            None, the bound holds in expectation over random samples.
        images: Number of labelled images over which the risk is averaged.
        is_reached: Whether at least one threshold satisfies the bound and, for ``at_most_wrong``,
            predicts at least 0.1 labels per image.
        images_needed: Estimated number of labelled images that would be sufficient, including the
            images of the record. If None, the guarantee is reached, or more images do not help.
        sentence: Summary of the guarantee in words.
    """

    threshold: float
    risk: float
    level: float
    confidence: float | None
    images: int
    is_reached: bool
    images_needed: int | None
    sentence: str

    def predict(self, probabilities: npt.ArrayLike) -> Flags:
        """Return True where a probability reaches the threshold, in the shape of the input.

        If the threshold is 1, all elements are False.
        """
        p = np.asarray(probabilities, dtype=np.float64)
        flags: Flags = (p >= self.threshold) & (self.threshold < 1)
        return flags


class RiskDescription(NamedTuple):
    """Phrases that describe a risk in the summary of a guarantee.

    Attributes:
        clause: Clause that completes a sentence after the words "at most 10 % of".
        requirement: Noun phrase that completes "images with". The risk is a mean over these images
            only.
    """

    clause: str
    requirement: str


def build_guarantee_result(
    description: RiskDescription,
    threshold: float,
    risk: float,
    level: float,
    confidence: float | None,
    images: int,
) -> Guarantee:
    """Return a guarantee that is reached, with a summary in words.

    Args:
        description: Phrases that describe the risk.
        threshold: Threshold that reaches the guarantee.
        risk: Mean risk at the threshold on the labelled images.
        level: Upper bound of the mean risk.
        confidence: Confidence of the bound. If None, the bound holds in expectation.
        images: Number of labelled images.
    """
    premise = _guarantee_result_confidence_text(confidence) or "in expectation"
    sentence = (
        f"Predict {_guarantee_result_threshold_text(threshold)}. {premise.capitalize()}, at most "
        f"{format_guarantee_result_percent(level)} of {description.clause}, averaged over images "
        f"with {description.requirement}. The observed average on {images} such "
        f"labelled images is {format_guarantee_result_percent(risk)}."
    )
    return Guarantee(threshold, risk, level, confidence, images, True, None, sentence)


def build_failed_guarantee_result(
    description: RiskDescription,
    level: float,
    confidence: float | None,
    images: int,
    images_needed: int | None,
    reason: str,
    note: str = "",
) -> Guarantee:
    """Return a guarantee that is not reached, with a suggestion in words.

    Args:
        description: Phrases that describe the risk.
        level: Upper bound of the mean risk.
        confidence: Confidence of the bound. If None, the bound holds in expectation.
        images: Number of labelled images.
        images_needed: Estimated number of labelled images that would be sufficient, including the
            images of the record. If None, more images do not help.
        reason: Main clause that explains why more images do not help.
        note: Sentence in front of the suggestion, with a space at its end, or an empty text.
    """
    premise = _guarantee_result_confidence_text(confidence)
    remedy = (
        f"{images} labelled images with {description.requirement} are not sufficient; "
        f"about {images_needed} labelled images in total are needed."
        if images_needed
        else f"On {images} labelled images, {reason}. Calibrate again or increase the level."
    )
    sentence = (
        f"It cannot be guaranteed{f' {premise}' if premise else ''} that at most "
        f"{format_guarantee_result_percent(level)} of {description.clause}. {note}{remedy}"
    )
    return Guarantee(1.0, np.nan, level, confidence, images, False, images_needed, sentence)


def format_guarantee_result_percent(share: float) -> str:
    """Return a fraction as a percentage with three significant digits.

    If a fraction below 1 would be rounded to 100 %, more digits are shown.

    Example:
        >>> [format_guarantee_result_percent(share) for share in (0.1, 0.0625, 0.999999, 1)]
        ['10 %', '6.25 %', '99.9999 %', '100 %']
    """
    percentages = (f"{100 * share:.{digits}g}" for digits in range(3, 17))
    return f"{next((p for p in percentages if p != '100'), '100')} %"


def _guarantee_result_threshold_text(threshold: float) -> str:
    """Return a phrase that describes which labels are predicted at a threshold."""
    digits = 3 if threshold < 0.99 else 5  # 0.9997 must not be rounded to 1
    return f"labels with probability >= {threshold:.{digits}g}" if threshold > 0 else "every label"


def _guarantee_result_confidence_text(confidence: float | None) -> str:
    """Return a phrase with the confidence, or an empty text if the confidence is None."""
    return f"with {format_guarantee_result_percent(confidence)} confidence" if confidence else ""
