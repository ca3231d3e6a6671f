"""Parse descriptions of calibrations, which state the provenance of probabilities."""

import re
from typing import Literal

CalibrationProvenance = Literal["labels", "no labels", "model", "loss"]

MODEL = "model"  # description of log-odds by the scale and the bias of a pretrained encoder
LOSS_ALONE = "by its loss alone"  # start of the description of uncalibrated log-odds
WITHOUT_LABELS = "without labels"  # in the description of a calibration on pseudo-labels
SHIFT_SUFFIX = ", adapted to "  # in the description of a calibration after a label shift
SHIFT_SUFFIX_0_1_0 = ", moved to "
RECALIBRATION_SUFFIX = ", recalibrated on "  # in the description after a recalibration
CROSS_FITTED = "cross-fitted"  # in the description of probabilities of calibration rows
_MODEL = re.compile(r"model\b")  # start of the description of log-odds of a pretrained encoder

# version 0.1.0 wrote "parts of"; "generated" scenes are not calibration images of the user
_IMAGE_COUNT = re.compile(r"\b(?:on|pseudo-labels of|parts of) (\d[\d,]*) (?!generated)")


def calibration_image_count(description: str) -> int | None:
    """Return the number of calibration images in a description, or None if it has no number.

    Example:
        >>> calibration_image_count("platt on pseudo-labels of 40 images without labels")
        40
    """
    match = _IMAGE_COUNT.search(description)
    return int(match[1].replace(",", "")) if match else None


def calibration_provenance(description: str | None) -> CalibrationProvenance | None:
    """Return the kind of data on which the probabilities of predictions were calibrated.

    Args:
        description: Description of the calibration of predictions or of an index, such as
            ``Predictions.calibration``. If None, there are no probabilities.

    Returns:
        ``labels`` for annotated images, also of a recalibration; ``no labels`` for images without
        labels, on which a calibrator was fitted or to which a calibration was adapted; ``model``
        for the scale and bias of a pretrained encoder; ``loss`` for the loss of a fit without
        calibration. If there are no probabilities, None.

    Example:
        >>> calibration_provenance("platt on pseudo-labels of 40 images without labels")
        'no labels'
    """
    if description is None:
        return None
    _, suffix, after_recalibration = description.rpartition(RECALIBRATION_SUFFIX)
    if suffix:
        return "no labels" if SHIFT_SUFFIX in after_recalibration else "labels"
    if description.startswith(LOSS_ALONE):
        return "loss"
    if _MODEL.match(description):
        return "model"
    unlabelled = (WITHOUT_LABELS, SHIFT_SUFFIX, SHIFT_SUFFIX_0_1_0)
    return "no labels" if any(text in description for text in unlabelled) else "labels"
