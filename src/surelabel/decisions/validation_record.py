"""Count correct, wrong and missed labels at many thresholds (validation record)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import Array, Flags
from surelabel.decisions.input_validation import validate_decision_inputs
from surelabel.errors import DataError, InputError

THRESHOLDS: Array = np.concatenate(([0.0], expit(np.arange(-80, 81) / 10), [1.0]))
IMAGES_PER_BLOCK = 4096  # images processed at a time, which limits the memory
ROUNDING = 1e-6  # rounding error of sums of many shares


@dataclass(frozen=True)
class ValidationRecord:
    """Counts of predicted, correct, wrong and missed labels at each of g thresholds.

    A label is predicted if its probability is at or above the threshold. At the last threshold, 1,
    no label is predicted. Unknown targets and images without a known target are left out. If
    targets are between 0 and 1, the counts are sums of targets. Records of different images with
    the same labels can be added.

    Attributes:
        thresholds: Probability thresholds, increasing from 0 to 1, ``(g,)``. Between log-odds of -8
            and 8, adjacent thresholds differ by 0.1 in log-odds.
        predicted_positives: Number of images for which a label is predicted, for c labels and g
            thresholds, ``(c, g)``.
        true_positives: Sum of the targets of the images for which a label is predicted, ``(c, g)``.
        expected_true_positives: Sum of the probabilities of the images for which a label is
            predicted, ``(c, g)``.
        images_with_predictions: Number of images with at least one predicted label, ``(g,)``.
        false_discovery_sum: Fraction of wrong labels among the predicted labels of an image, summed
            over the images with a predicted label, ``(g,)``.
        false_negative_sum: Fraction of the positive labels of an image that are not predicted,
            summed over the images with a positive label, ``(g,)``.
        images: Number of images with a known target.
        images_with_positives: Number of images with a positive label.
    """

    thresholds: Array
    predicted_positives: Array
    true_positives: Array
    expected_true_positives: Array
    images_with_predictions: Array
    false_discovery_sum: Array
    false_negative_sum: Array
    images: int
    images_with_positives: int

    @property
    def support(self) -> Array:
        """Return the number of known positives of each label, ``(c,)``."""
        support: Array = self.true_positives[:, 0]
        return support

    @property
    def predicted_labels_per_image(self) -> Array:
        """Return the estimated number of predicted labels per image at each threshold, ``(g,)``.

        The number is the sum over labels of the fraction of known targets that are predicted, so
        unknown targets do not reduce the number. A label without a known target adds 0.
        """
        known = self.predicted_positives[:, :1]
        fractions = self.predicted_positives / np.maximum(known, 1)
        labels_per_image: Array = fractions.sum(axis=0)
        return labels_per_image

    def __add__(self, other: "ValidationRecord") -> "ValidationRecord":
        """Return the sum of two validation records, which describes the images of both records.

        Raises:
            InputError: If the numbers of labels or the thresholds differ.
        """
        shape, other_shape = self.predicted_positives.shape, other.predicted_positives.shape
        if shape != other_shape or (self.thresholds != other.thresholds).any():
            raise InputError(
                "Only validation records with equal labels and thresholds can be added; got "
                f"shapes (labels, thresholds) {shape} and {other_shape}. Create both records again "
                "with the same labels."
            )
        sums = {
            f.name: getattr(self, f.name) + getattr(other, f.name)
            for f in fields(self)
            if f.name != "thresholds"
        }
        return ValidationRecord(thresholds=self.thresholds, **sums)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all fields as arrays by name, with numbers as arrays of one element."""
        arrays = {f.name: np.atleast_1d(getattr(self, f.name)) for f in fields(self)}
        return {name: np.ascontiguousarray(array) for name, array in arrays.items()}

    @classmethod
    def restore(cls, state: Mapping[str, npt.ArrayLike]) -> "ValidationRecord":
        """Load a validation record from the output of ``state``.

        Raises:
            DataError: If a field is missing, unexpected or not valid.
        """
        names = [f.name for f in fields(cls)]
        if set(state) != set(names):
            raise DataError(
                f"A saved validation record must contain {', '.join(names)}; "
                f"got {', '.join(sorted(state)) or 'nothing'}. Calibrate again."
            )
        arrays = {name: _validate_validation_record_counts(name, state[name]) for name in names}
        record = cls(
            **{name: arrays[name] for name in names[:-2]},
            images=_validation_record_whole_number("images", arrays["images"]),
            images_with_positives=_validation_record_whole_number(
                "images_with_positives", arrays["images_with_positives"]
            ),
        )
        for error in _validation_record_inconsistencies(record):
            raise DataError(f"A saved validation record is damaged: {error}. Calibrate again.")
        return record


def record_validation(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> ValidationRecord:
    """Count predicted, correct, wrong and missed labels at each threshold.

    Args:
        logits: Calibrated log-odds of n images and c labels, ``(n, c)``. The calibrator of an image
            must not be fitted on this image: use held-out images or out-of-fold logits.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
        known: True where the target is known, ``(n, c)``. If None, all targets except
            NaN are known.

    Returns:
        The validation record, which is the input of operating points and guarantees. The record
        does not contain the images.

    Raises:
        InputError: If the shapes differ, if a logit is not finite, if no target is known, or if a
            known target is outside [0, 1].

    Example:
        >>> record = record_validation([[2.0, -2.0], [0.0, 0.0]], [[1, 0], [1, 0]])
        >>> half = record.thresholds.searchsorted(0.5)
        >>> record.predicted_positives[:, half], record.true_positives[:, half]
        (array([2., 1.]), array([2., 0.]))
        >>> record.false_discovery_sum[half]
        np.float64(0.5)
    """
    probabilities, targets, known = validate_decision_inputs(logits, targets, known)
    starts = range(0, len(known), IMAGES_PER_BLOCK)
    blocks = (slice(start, start + IMAGES_PER_BLOCK) for start in starts)
    first, *others = (
        _validation_record_of_block(probabilities[b], targets[b], known[b]) for b in blocks
    )
    return sum(others, start=first)


def _validation_record_of_block(
    probabilities: Array, targets: Array, known: Flags
) -> ValidationRecord:
    """Return the validation record of one block of images."""
    n_images, n_labels = known.shape
    image, label = np.nonzero(known)
    p, y = probabilities[known], targets[known]
    bins = np.searchsorted(THRESHOLDS, p, side="right") - 1
    bins = np.minimum(bins, THRESHOLDS.size - 2)  # no label is predicted at 1
    predicted = _validation_record_threshold_sums(image, bins, n_images)
    right = _validation_record_threshold_sums(image, bins, n_images, y)
    positives = right[:, :1]
    return ValidationRecord(
        thresholds=THRESHOLDS,
        predicted_positives=_validation_record_threshold_sums(label, bins, n_labels),
        true_positives=_validation_record_threshold_sums(label, bins, n_labels, y),
        expected_true_positives=_validation_record_threshold_sums(label, bins, n_labels, p),
        images_with_predictions=np.count_nonzero(predicted, axis=0).astype(float),
        false_discovery_sum=_validation_record_ratio_sum(predicted - right, predicted),
        false_negative_sum=_validation_record_ratio_sum(
            positives - right, np.broadcast_to(positives, right.shape)
        ),
        images=int(np.count_nonzero(predicted[:, 0])),
        images_with_positives=int(np.count_nonzero(positives)),
    )


def _validation_record_threshold_sums(
    group: npt.NDArray[np.intp],
    bins: npt.NDArray[np.intp],
    n_groups: int,
    weights: Array | None = None,
) -> Array:
    """Return the sum of weights, or the number of decisions, at or above each threshold, by group.

    The shape is ``(n_groups, g)``.
    """
    g = THRESHOLDS.size
    histogram = np.bincount(group * g + bins, weights, n_groups * g).reshape(n_groups, g)
    above: Array = np.cumsum(histogram[:, ::-1], axis=1, dtype=float)[:, ::-1]
    return above


def _validation_record_ratio_sum(numerator: Array, denominator: Array) -> Array:
    """Return the sum of the ratios over images, with 0 for a denominator of 0, ``(g,)``."""
    ratios = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
    total: Array = ratios.sum(axis=0)
    return total


def _validate_validation_record_counts(name: str, value: npt.ArrayLike) -> Array:
    """Return saved counts as a float64 array, after checking that all are finite and at least 0."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all() or (array < 0).any():
        raise DataError(
            f"A saved validation record must contain finite numbers of at least 0; got "
            f"other values for {name}. Calibrate again."
        )
    return array.astype(np.float64)


def _validation_record_whole_number(name: str, value: Array) -> int:
    """Return the saved whole number from an array of one element."""
    if value.size != 1 or value.item() != int(value.item()):
        raise DataError(
            f"{name} of a saved validation record must be one whole number; got {value}. "
            "Calibrate again."
        )
    return int(value.item())


def _validation_record_inconsistencies(record: ValidationRecord) -> Iterator[str]:
    """Yield a clause that describes each inconsistency of a validation record."""
    thresholds, predicted = record.thresholds, record.predicted_positives
    images = record.images_with_predictions
    per_label = (predicted, record.true_positives, record.expected_true_positives)
    per_threshold = (images, record.false_discovery_sum, record.false_negative_sum)
    if {a.shape for a in per_label} != {(*predicted.shape[:1], thresholds.size)} or {
        a.shape for a in per_threshold
    } != {thresholds.shape}:
        yield f"each array must have one value for each of {thresholds.size} thresholds"
        return
    if (
        thresholds.size < 2
        or thresholds[0] != 0
        or thresholds[-1] != 1
        or (np.diff(thresholds) <= 0).any()
    ):
        yield "thresholds do not increase from 0 to 1"
    decreasing = (*per_label, images, -record.false_negative_sum)
    if any((np.diff(a) > ROUNDING).any() for a in decreasing):
        yield "more labels are predicted at a higher threshold"
    if predicted[:, -1].any() or images[-1]:
        yield "a label is predicted at threshold 1"
    if (
        any((a > predicted + ROUNDING).any() for a in per_label)
        or (record.false_discovery_sum > images + ROUNDING).any()
    ):
        yield "more labels are correct, or wrong, than are predicted"
    if (record.false_negative_sum > record.images_with_positives + ROUNDING).any():
        yield "more labels are missed than are positive"
    if not (0 < images[0] <= record.images and record.images_with_positives <= record.images):
        yield "the numbers of images are inconsistent"
