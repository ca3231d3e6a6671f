"""Predict the calibration images from which conformal selection computes p-values."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.progress import Progress
from surelabel.recognizer.inputs import (
    LabelledInput,
    RecognizerInput,
    resolve_recognizer_input,
)
from surelabel.recognizer.random_rows import take_random_rows
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.used_rows import Keys, feature_row_keys, image_keys
from surelabel.recognizer.user_warnings import warn_skipped_images
from surelabel.recognizer.vector_normalization import row_noun
from surelabel.records import LabelledFeatures, LabelledImages, Predictions
from surelabel.storage.image_paths import absolute_image_path


@dataclass(frozen=True, eq=False)
class CalibrationSample:
    """Random annotated images that a recognizer was neither fitted nor calibrated on.

    Attributes:
        predictions: Calibrated predictions of n images and c labels.
        is_positive: True for positive targets, ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        keys: Hash of the content of each image, ``(n,)``.
    """

    predictions: Predictions
    is_positive: Flags
    known: Flags
    keys: Keys

    @property
    def logits(self) -> Array:
        """Return the calibrated log-odds, ``(n, c)``."""
        return calibrated_logits(self.predictions)

    def __len__(self) -> int:
        return len(self.keys)


def make_calibration_sample(
    recognizer: Recognizer, source: LabelledInput, *, progress: Progress | None = None
) -> CalibrationSample:
    """Predict the random annotated images that the recognizer was not fitted or calibrated on.

    Images that a strategy chose, and images that the recognizer was fitted or calibrated on, are
    left out with a warning. Images without a known target are left out too.

    Args:
        recognizer: Calibrated recognizer.
        source: Random sample of the images to select from: annotated images, vectors or scores.
        progress: Function called with the number of encoded images and the total number of images.

    Raises:
        NotFitted: If the recognizer is not calibrated.
        InputError: If ``source`` has no labels, if no image remains, or if a target is neither 0
            nor 1.
        DataError: If no image can be read.
    """
    if not isinstance(source, LabelledImages | LabelledFeatures) or not len(source.names):
        raise InputError(
            "Calibration images must have labels, as LabelledImages or LabelledFeatures; got "
            f"{type(source).__name__} without labels. Give a random sample of annotated images."
        )
    source = take_random_rows(source, "A guarantee")
    labelled = recognizer.align_labels(source)
    predictions = recognizer.predict(source, progress=progress)
    calibrated_logits(predictions)  # raises an error before the targets are checked
    warn_skipped_images(predictions.skipped, len(source), "calibration images")
    skipped = {image.path for image in predictions.skipped}
    rows = np.array([row for row, path in enumerate(source.paths) if str(path) not in skipped])
    targets, known = labelled.targets[rows], labelled.known[rows]
    if not np.isin(targets[known], (0, 1)).all():
        raise InputError(
            "Targets of calibration images must be 0 or 1; got soft targets between 0 and 1. "
            "Replace each soft target by 0, 1 or NaN (unknown)."
        )
    sample = CalibrationSample(
        predictions, targets > 0, known, prediction_keys(recognizer, source, predictions)
    )
    return _unused_images(recognizer, sample)


def prediction_keys(
    recognizer: Recognizer, source: RecognizerInput, predictions: Predictions
) -> Keys:
    """Return the hash of the content of each predicted image or row, ``(n,)``.

    Args:
        recognizer: Recognizer of the predictions.
        source: Data of the predictions.
        predictions: Predictions of the n readable images.
    """
    resolved = resolve_recognizer_input(source)
    if isinstance(resolved, LabelledFeatures):
        return feature_row_keys(recognizer.encoder, resolved)
    return image_keys(predictions.hashes or ())


def calibrated_logits(predictions: Predictions) -> Array:
    """Return the calibrated log-odds of predictions, ``(n, c)``.

    Raises:
        NotFitted: If the predictions are not calibrated.
    """
    if predictions.logits is None or predictions.calibration is None:
        return predictions.probabilities  # raises the error
    return predictions.logits.astype(np.float64)


def predict_new_images(
    recognizer: Recognizer,
    images: RecognizerInput,
    sample: CalibrationSample,
    *,
    progress: Progress | None = None,
) -> tuple[Predictions, int]:
    """Predict the images that are neither in the calibration sample nor used by the recognizer.

    Args:
        recognizer: Calibrated recognizer.
        images: Images, vectors or scores, as for ``Recognizer.predict``; labels are ignored.
        sample: Calibration sample of the recognizer.
        progress: Function called with the number of encoded images and the total number of images.

    Returns:
        The predictions of the new images, and the number of images that were left out.

    Raises:
        InputError: If all images are left out.
        DataError: If no image can be read.
    """
    predictions = recognizer.predict(images, progress=progress)
    warn_skipped_images(predictions.skipped, len(predictions) + len(predictions.skipped), "images")
    keys = prediction_keys(recognizer, images, predictions)
    is_new = ~are_calibration_rows(keys, predictions.paths, sample)
    if recognizer.used_rows is not None:
        is_new &= ~recognizer.used_rows.contain(keys)
    if not is_new.any():
        raise InputError(
            "At least one image must be new, that is, not used for the fit or the calibration; got "
            f"no new image among {format_count(len(is_new), row_noun(recognizer.encoder))}. Give "
            "other images."
        )
    return _take_predictions(predictions, is_new), int((~is_new).sum())


def are_calibration_rows(keys: Keys, paths: Sequence[str], sample: CalibrationSample) -> Flags:
    """Return which images belong to a calibration sample, as a mask ``(n,)``.

    Each calibration image corresponds to at most one image: the image with the same path and
    content, or else the first image with the same content. Further images with this content are new
    images. If these copies were left out, images that occur several times would be rarer among the
    new images than in the calibration sample.

    Args:
        keys: Hash of the content of n images, ``(n,)``.
        paths: Paths of the images, or identifiers of vectors or scores.
        sample: Calibration sample.
    """
    own_keys = sample.keys.tolist()
    n_left = Counter(own_keys)
    own = set(zip(own_keys, map(absolute_image_path, sample.predictions.paths), strict=True))
    rows = np.flatnonzero(np.isin(keys, sample.keys)).tolist()
    rows.sort(key=lambda row: (int(keys[row]), absolute_image_path(paths[row])) not in own)
    is_calibration_row = np.zeros(len(keys), dtype=bool)
    for row in rows:
        key = int(keys[row])
        is_calibration_row[row] = n_left[key] > 0
        n_left[key] -= 1
    return is_calibration_row


def _unused_images(recognizer: Recognizer, sample: CalibrationSample) -> CalibrationSample:
    """Return the labelled images of a sample that the recognizer was not fitted or calibrated on.

    Raises:
        InputError: If no image remains.
    """
    noun, is_labelled = row_noun(recognizer.encoder), sample.known.any(axis=1)
    if recognizer.used_rows is None:
        warnings.warn(
            "An earlier version of surelabel saved this recognizer without hashes of the training "
            "images. The guarantee holds only if the recognizer was not fitted or calibrated on "
            "these calibration images.",
            stacklevel=4,
        )
        is_used = np.zeros(len(sample), dtype=bool)
    else:
        is_used = recognizer.used_rows.contain(sample.keys) & is_labelled
    if not (is_labelled & ~is_used).any():
        raise InputError(
            "At least one calibration image must have labels and must be unused; got "
            f"{format_count(int(is_used.sum()), noun)} of the fit or an earlier calibration, and "
            f"{format_count(int((~is_labelled).sum()), noun)} without labels. Annotate other "
            "images."
        )
    if is_used.any():
        warnings.warn(
            f"{int(is_used.sum()):,} of {format_count(len(sample), f'calibration {noun}')} "
            f"{'is' if is_used.sum() == 1 else 'are'} left out, because "
            f"{'it was' if is_used.sum() == 1 else 'they were'} used in the fit or an earlier "
            "calibration.",
            stacklevel=4,
        )
    rows = is_labelled & ~is_used
    return CalibrationSample(
        _take_predictions(sample.predictions, rows),
        sample.is_positive[rows],
        sample.known[rows],
        sample.keys[rows],
    )


def _take_predictions(predictions: Predictions, rows: Flags) -> Predictions:
    """Return the predictions of some images, without image vectors and uncertainty."""
    kept = np.flatnonzero(rows).tolist()
    hashes = predictions.hashes
    return replace(
        predictions,
        paths=[predictions.paths[row] for row in kept],
        scores=predictions.scores[kept],
        logits=None if predictions.logits is None else predictions.logits[kept],
        features=None,
        hashes=None if hashes is None else [hashes[row] for row in kept],
        uncertainty=None,
        uncertainty_kind=None,
    )
