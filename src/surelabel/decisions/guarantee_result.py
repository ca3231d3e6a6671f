"""Result of risk control: one threshold for all labels with a bound on its risk."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surelabel.records import Flags


@dataclass(frozen=True)
class Guarantee:
    """Threshold for all labels with an upper bound on a risk.

    The bound is on the mean risk of images from the distribution of the labelled images.

    Attributes:
        threshold: Probability in [0, 1]. It is 1, where no label is predicted, if no threshold
            reaches the guarantee.
        risk: Mean risk at the threshold on the labelled images. NaN if not reached.
        level: Upper bound of the mean risk.
        confidence: Probability that the bound holds, over random samples of labelled images. None
            if the bound holds in expectation over such samples.
        images: Number of labelled images that the estimate is based on.
        is_reached: Whether a threshold reaches the guarantee.
        images_needed: Estimated number of labelled images that are sufficient. None if reached, or
            if more images do not help.
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
        """Return True where a probability reaches the threshold, in the shape of the input."""
        p = np.asarray(probabilities, dtype=np.float64)
        flags: Flags = (p >= self.threshold) & (self.threshold < 1)
        return flags


class RiskDescription(NamedTuple):
    """Words that describe a risk in a sentence.

    Attributes:
        clause: Clause that completes the sentence "at most 10 % of ".
        requirement: Noun phrase that completes "images with "; other images do not count.
    """

    clause: str
    requirement: str


def build_guarantee(
    description: RiskDescription,
    threshold: float,
    risk: float,
    level: float,
    confidence: float | None,
    images: int,
) -> Guarantee:
    """Return a guarantee that is reached, with its sentence.

    Args:
        description: Words that describe the risk.
        threshold: Threshold that reaches the guarantee.
        risk: Mean risk at the threshold on the labelled images.
        level: Upper bound of the mean risk.
        confidence: Confidence of the bound, None for a bound in expectation.
        images: Number of labelled images.
    """
    premise = _confidence_text(confidence) or "in expectation"
    sentence = (
        f"Predict {_threshold_text(threshold)}. {premise.capitalize()}, at most "
        f"{format_percent(level)} of {description.clause}, averaged over images with "
        f"{description.requirement}. Observed on {images} such labelled images: "
        f"{format_percent(risk)}."
    )
    return Guarantee(threshold, risk, level, confidence, images, True, None, sentence)


def build_failed_guarantee(
    description: RiskDescription,
    level: float,
    confidence: float | None,
    images: int,
    images_needed: int | None,
    reason: str,
) -> Guarantee:
    """Return a guarantee that is not reached, with a sentence that gives the remedy.

    Args:
        description: Words that describe the risk.
        level: Upper bound of the mean risk.
        confidence: Confidence of the bound, None for a bound in expectation.
        images: Number of labelled images.
        images_needed: Estimated number of labelled images that are sufficient, None if more images
            do not help.
        reason: Main clause that says why more images do not help.
    """
    premise = _confidence_text(confidence)
    remedy = (
        f"{images} labelled images with {description.requirement} are not sufficient; "
        f"label about {images_needed}."
        if images_needed
        else f"On {images} labelled images, {reason}. Calibrate again or increase the level."
    )
    sentence = (
        f"It cannot be guaranteed{f' {premise}' if premise else ''} that at most "
        f"{format_percent(level)} of {description.clause}. {remedy}"
    )
    return Guarantee(1.0, np.nan, level, confidence, images, False, images_needed, sentence)


def format_percent(share: float) -> str:
    """Return a share as a percentage with three significant digits.

    Example:
        >>> format_percent(0.1), format_percent(0.0625)
        ('10 %', '6.25 %')
    """
    return f"{100 * share:.3g} %"


def _threshold_text(threshold: float) -> str:
    """Return the labels that a threshold predicts, in words."""
    digits = 3 if threshold < 0.99 else 5  # 0.9997 must not become 1, where nothing is predicted
    return f"labels with probability >= {threshold:.{digits}g}" if threshold > 0 else "every label"


def _confidence_text(confidence: float | None) -> str:
    """Return the confidence in words, or an empty text without a confidence."""
    return f"with {format_percent(confidence)} confidence" if confidence else ""
