"""Recalibrate a recognizer with a scale and a shift, fitted on few annotated random images."""

import warnings
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.calibration import Temperature
from surelabel.counts import format_count
from surelabel.decisions import record_validation
from surelabel.encoders import Encoder
from surelabel.evaluation.recalibration import check_recalibration_images
from surelabel.recognizer.calibration_record import CalibrationRecord
from surelabel.recognizer.inputs import LabelledInput
from surelabel.recognizer.label_tree_projection import LabelTreeProjection
from surelabel.recognizer.used_rows import Keys, UsedRows, feature_row_keys, image_keys
from surelabel.recognizer.vector_normalization import row_noun
from surelabel.records import LabelledFeatures, LabelledImages, Predictions

IDENTITY = {"temperature": 1.0}  # state of a calibrator that does not change log-odds


@dataclass(frozen=True, eq=False)
class RecalibrationData:
    """Annotated random images that a recognizer was not fitted on.

    Attributes:
        logits: Current log-odds of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``. Unknown targets are 0.
        known: True where the target is known, ``(n, c)``.
        keys: Hash of the content of each image, ``(n,)``.
    """

    logits: Array
    targets: Array
    known: Flags
    keys: Keys


def select_recalibration_data(
    encoder: Encoder,
    used_rows: UsedRows | None,
    source: LabelledInput,
    labelled: LabelledImages,
    predictions: Predictions,
) -> RecalibrationData:
    """Return the annotated images of a recalibration, without the images of the fit.

    Log-odds of images of the fit are biased. A warning states the number of such images.

    Args:
        encoder: Encoder of the recognizer.
        used_rows: Hashes of the images of the fit, or None if they are unknown.
        source: Random images, vectors or scores.
        labelled: Targets of ``source``, with the labels of the recognizer.
        predictions: Predictions of the readable images of ``source``.

    Raises:
        InputError: If fewer than 20 images remain.
    """
    skipped = {image.path for image in predictions.skipped}
    rows = np.array([r for r, path in enumerate(source.paths) if str(path) not in skipped])
    if isinstance(source, LabelledFeatures):
        keys = feature_row_keys(encoder, source)[rows]
    else:
        keys = image_keys(predictions.hashes or ())
    known = labelled.known[rows]
    is_annotated = known.any(axis=1)
    is_fitted = np.zeros(len(rows), dtype=bool)
    if used_rows is not None:
        is_fitted = is_annotated & np.isin(keys, used_rows.fit)
    if is_fitted.any():
        warnings.warn(describe_images_of_fit(int(is_fitted.sum())), stacklevel=4)
    kept = is_annotated & ~is_fitted
    check_recalibration_images(int(kept.sum()))
    assert predictions.logits is not None  # checked by the caller
    logits = predictions.logits[kept].astype(np.float64)
    return RecalibrationData(logits, labelled.targets[rows][kept], known[kept], keys[kept])


def describe_images_of_fit(n_images: int) -> str:
    """Return the warning about images of the fit that a recalibration leaves out."""
    verb, pronoun = ("is", "it") if n_images == 1 else ("are", "them")
    return (
        f"{format_count(n_images, 'annotated image')} {verb} left out, because the recognizer was "
        f"fitted on {pronoun}."
    )


def recalibrated_calibration(
    calibration: CalibrationRecord | None,
    description: str,
    encoder: Encoder,
    scale: float,
    shift: float,
    cross_fitted_logits: Array,
    targets: Array,
    known: Flags,
    tree: LabelTreeProjection | None,
) -> CalibrationRecord:
    """Return the record of a calibration that is followed by a scale and a shift.

    Args:
        calibration: Fitted calibration. If None, a link computed the log-odds without a calibrator.
        description: Description of the current log-odds.
        encoder: Encoder of the recognizer.
        scale: Factor of the log-odds, above 0.
        shift: Constant that is added to the scaled log-odds.
        cross_fitted_logits: Cross-fitted log-odds of the annotated images, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        tree: Projection of the log-odds of the link to a tree of labels, or None.
    """
    if calibration is None:
        identity = Temperature().restore(IDENTITY)
        calibration = CalibrationRecord("temperature", identity, description, tree=tree)
    record = record_validation(cross_fitted_logits, targets, known)
    return calibration.recalibrated(scale, shift, record, noun=row_noun(encoder))
