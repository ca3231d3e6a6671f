"""Select thresholds from the validation record of a calibrated recognizer."""

from typing import Any

import numpy as np

from surelabel.decisions import (
    GUARANTEES,
    OPERATING_POINTS,
    Guarantee,
    Thresholds,
    ValidationRecord,
)
from surelabel.decisions.validation_record import THRESHOLDS
from surelabel.errors import NotFitted
from surelabel.recognizer.calibrating import MIN_RECORD_IMAGES
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import calibration_provenance
from surelabel.records.calibration_description import calibration_image_count
from surelabel.tables import configure_table_entry


def operating_point(recognizer: Recognizer, goal: str, **settings: Any) -> Thresholds:
    """Return the threshold of each label that reaches a goal, such as a precision.

    Args:
        recognizer: Recognizer calibrated on at least 20 images. If ``goal`` is ``cost``, fewer
            images are sufficient.
        goal: Key of ``OPERATING_POINTS``, such as ``precision``.
        settings: Settings of the operating point, such as ``at_least=0.9``.

    Returns:
        The threshold of each label, with its expected precision and recall. Without a validation
        record, ``cost`` returns the threshold, but no label is reached and the recall is NaN.

    Raises:
        UnknownName: If ``goal`` is unknown.
        ConfigError: If a setting is unknown, or the value of a setting is invalid.
        NotFitted: If the recognizer is not calibrated, or has no validation record. Also if the
            probabilities are computed with the scale and the bias of the pretrained encoder.
    """
    select_thresholds = configure_table_entry(OPERATING_POINTS, goal, **settings)
    _check_thresholds_are_not_of_model(recognizer)
    needs_no_record = goal == "cost" and recognizer.calibrated_on
    if needs_no_record and validation_record_for_thresholds(recognizer) is None:
        record = _empty_record_for_threshold_selection(len(recognizer.names))
    else:
        record = _require_record_for_threshold_selection(recognizer)
    thresholds: Thresholds = select_thresholds(record)
    return thresholds


def guarantee(recognizer: Recognizer, goal: str, **settings: Any) -> Guarantee:
    """Return one threshold for all labels, with a statistical guarantee for the error rate.

    Args:
        recognizer: Recognizer calibrated on at least 20 annotated images.
        goal: Key of ``GUARANTEES``, such as ``at_most_wrong``.
        settings: Settings of the guarantee, such as ``level=0.1``.

    Raises:
        UnknownName: If ``goal`` is unknown.
        ConfigError: If a setting is unknown, or the value of a setting is invalid.
        NotFitted: If the recognizer has no validation record from labels. Also if the probabilities
            are computed with the scale and the bias of the pretrained encoder.
    """
    if recognizer.calibration and not recognizer.calibration.record_uses_labels:
        raise NotFitted(
            "A guarantee requires a calibration on annotated images; got a calibration without "
            "labels. Run `surelabel calibrate MODEL DATASET --out FOLDER` with "
            f"{MIN_RECORD_IMAGES} or more annotated images, and give FOLDER as the model. Or use "
            "an operating point without a guarantee, such as --best-f1."
        )
    compute_guarantee = configure_table_entry(GUARANTEES, goal, **settings)
    _check_thresholds_are_not_of_model(recognizer)
    result: Guarantee = compute_guarantee(_require_record_for_threshold_selection(recognizer))
    return result


def _check_thresholds_are_not_of_model(recognizer: Recognizer) -> None:
    """Check that the probabilities come from a calibration, not from the pretrained encoder.

    Raises:
        NotFitted: If the probabilities are computed with the scale and the bias of the encoder.
    """
    if calibration_provenance(recognizer.calibrated_on) == "model":
        raise NotFitted(
            "Operating points and guarantees require a calibration on images; got the "
            f"probabilities of the pretrained encoder {recognizer.encoder.name} (calibration: "
            "model). Run `surelabel calibrate MODEL DATASET --out FOLDER` with "
            f"{MIN_RECORD_IMAGES} or more annotated images, and give FOLDER as the model. Or use a "
            "fixed --threshold."
        )


def validation_record_for_thresholds(recognizer: Recognizer) -> ValidationRecord | None:
    """Return the validation record for thresholds, or None after an adaptation to label shift.

    Args:
        recognizer: Recognizer with or without calibration.

    Returns:
        The validation record of the labels of the recognizer, or None if there is none.
    """
    calibration = recognizer.calibration
    return calibration.record if calibration and not calibration.shift else None


def _require_record_for_threshold_selection(recognizer: Recognizer) -> ValidationRecord:
    """Return the validation record of a recognizer, or raise an error if there is none.

    Raises:
        NotFitted: If there is no validation record, or if the calibration has a label shift.
    """
    record = validation_record_for_thresholds(recognizer)
    if record is None:
        threshold = " Or use a fixed --threshold, which needs no validation record."
        raise NotFitted(
            "Operating points and guarantees require a validation record; "
            f"{_reason_without_validation_record(recognizer)}. Run `surelabel calibrate MODEL "
            f"DATASET --out FOLDER` with {MIN_RECORD_IMAGES} or more annotated images, and give "
            f"FOLDER as the model. For an operating point, {MIN_RECORD_IMAGES} or more images "
            "without labels are sufficient (`surelabel calibrate MODEL IMAGES --unlabelled --out "
            f"FOLDER`); the result is not verified.{threshold if recognizer.calibrated_on else ''}"
        )
    return record


def _reason_without_validation_record(recognizer: Recognizer) -> str:
    """Return why a recognizer has no validation record, as a clause."""
    description, calibration = recognizer.calibrated_on, recognizer.calibration
    if description is None:
        return "the recognizer is not calibrated"
    if calibration is None:
        return f"the recognizer is not calibrated on images ({description})"
    calibrated = f"the recognizer is calibrated ({description}), but"
    if calibration.shift:
        return f"{calibrated} its adaptation to label shift has no validation record"
    n_images = calibration_image_count(description)
    if n_images is not None and n_images < MIN_RECORD_IMAGES:
        return f"{calibrated} on fewer than {MIN_RECORD_IMAGES} images"
    return f"{calibrated} its labels are not those of the calibration images"


def _empty_record_for_threshold_selection(n_labels: int) -> ValidationRecord:
    """Return a validation record without images, for thresholds that depend only on costs."""
    zeros_per_label = np.zeros((n_labels, THRESHOLDS.size))
    zeros = np.zeros(THRESHOLDS.size)
    return ValidationRecord(
        thresholds=THRESHOLDS,
        predicted_positives=zeros_per_label,
        true_positives=zeros_per_label,
        expected_true_positives=zeros_per_label,
        images_with_predictions=zeros,
        false_discovery_sum=zeros,
        false_negative_sum=zeros,
        images=0,
        images_with_positives=0,
    )
