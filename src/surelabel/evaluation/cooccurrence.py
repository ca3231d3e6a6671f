"""Measure how often two labels are predicted, or positive, in the same image."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.evaluation.labels_per_image import (
    predict_labels_per_image,
    validate_labels_per_image_targets,
)
from surelabel.metrics.arrays.nan_division import divide_or_nan


@dataclass(frozen=True)
class LabelCooccurrence:
    """Fraction of images with each pair of labels, or NaN if no image has known targets for both.

    Attributes:
        predicted: Fraction of images for which both labels of a pair are predicted, for c labels,
            ``(c, c)``. The diagonal contains the fraction of images for which a label is predicted.
        positive: Fraction of images in which both labels of a pair are positive, ``(c, c)``. If no
            targets were given, the value is None.
    """

    predicted: Array
    positive: Array | None

    @property
    def difference(self) -> Array | None:
        """Return predicted minus positive fractions, ``(c, c)``, or None without targets."""
        return None if self.positive is None else self.predicted - self.positive

    @property
    def mean_absolute_difference(self) -> float:
        """Return the mean absolute difference over pairs of two labels, or NaN without targets."""
        differences = np.array([abs(difference) for _, _, difference in self.pairs_by_difference()])
        return float(differences.mean()) if differences.size else float("nan")

    def pairs_by_difference(self) -> list[tuple[int, int, float]]:
        """Return pairs of columns with their difference, largest absolute difference first.

        Pairs with an undefined difference are left out. Without targets, the list is empty.
        """
        if self.difference is None:
            return []
        rows, columns = np.triu_indices(len(self.predicted), k=1)
        differences = self.difference[rows, columns]
        defined = np.flatnonzero(~np.isnan(differences))
        order = defined[np.argsort(-np.abs(differences[defined]), kind="stable")]
        return [(int(rows[i]), int(columns[i]), float(differences[i])) for i in order]


def measure_cooccurrence(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike | None = None,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float | npt.ArrayLike = 0.5,
) -> LabelCooccurrence:
    """Compute the fraction of images in which two labels are both predicted or both positive.

    Args:
        probabilities: Probabilities of n images and c labels in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown. If None, only
            predictions are counted. For targets between 0 and 1, the product of both targets of a
            pair is used.
        known: True where the target is known, ``(n, c)``. A pair is counted in an image only if
            both targets are known. If None, all targets except NaN are known.
        threshold: Minimum probability of a predicted label, as one number or as one number per
            label, ``(c,)``.

    Raises:
        InputError: If the shapes differ, if there is no image, if a probability is NaN or outside
            [0, 1], or if a known target is outside [0, 1].
        ConfigError: If a threshold is outside [0, 1], or if the number of thresholds is neither 1
            nor the number of labels.

    Example:
        >>> pairs = measure_cooccurrence([[0.9, 0.6, 0.1], [0.7, 0.2, 0.1]], [[1, 1, 0], [1, 1, 1]])
        >>> pairs.predicted.tolist()
        [[1.0, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
        >>> pairs.pairs_by_difference()
        [(0, 1, -0.5), (0, 2, -0.5), (1, 2, -0.5)]
    """
    p, y, known = validate_labels_per_image_targets(probabilities, targets, known)
    predicted = (predict_labels_per_image(p, threshold) & known).astype(np.float64)
    n_images = known.T.astype(np.float64) @ known
    positive = None if y is None else _cooccurrence_shares(y, n_images)
    return LabelCooccurrence(_cooccurrence_shares(predicted, n_images), positive)


def _cooccurrence_shares(labels: Array, n_images: Array) -> Array:
    """Return the fraction of images with each pair of labels, or one label on the diagonal."""
    counts = labels.T @ labels
    np.fill_diagonal(counts, labels.sum(axis=0))
    return divide_or_nan(counts, n_images)
