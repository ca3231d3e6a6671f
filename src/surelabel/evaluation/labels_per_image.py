"""Count the expected, predicted and positive labels of each image."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.counts import format_count
from surelabel.errors import ConfigError, InputError
from surelabel.metrics.arrays.input_validation import validate_probability_metric_inputs

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LabelCounts:
    """Numbers of expected, predicted and positive labels of each image.

    Labels with an unknown target are left out.

    Attributes:
        expected: Sum of the probabilities of each of n images, ``(n,)``.
        predicted: Number of labels with a probability at or above the threshold, ``(n,)``.
        positive: Sum of the targets of each image, ``(n,)``. If no targets were given, the value is
            None.
    """

    expected: Array
    predicted: Counts
    positive: Array | None

    @property
    def means(self) -> dict[str, float]:
        """Return the mean number of expected, predicted and positive labels per image."""
        counts = {
            "expected": self.expected,
            "predicted": self.predicted,
            "positive": self.positive,
        }
        return {name: float(np.mean(c)) for name, c in counts.items() if c is not None}

    @property
    def excess(self) -> float:
        """Return the relative excess of predicted over positive labels: -0.2 means 20 % too few.

        The excess is NaN if there are no positive labels or no targets.
        """
        if self.positive is None or not self.positive.sum():
            return float("nan")
        return float(self.predicted.sum() / self.positive.sum() - 1)

    @property
    def histograms(self) -> dict[str, Counts]:
        """Return the number of images with 0, 1, 2 … predicted and positive labels, ``(k,)``.

        The sum of the targets of an image is rounded to a whole number.
        """
        counts = {"predicted": self.predicted, "positive": self.positive}
        rounded = {k: np.rint(c).astype(np.int64) for k, c in counts.items() if c is not None}
        length = 1 + max(int(c.max()) for c in rounded.values())
        return {name: np.bincount(c, minlength=length) for name, c in rounded.items()}


def count_labels_per_image(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike | None = None,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float | npt.ArrayLike = 0.5,
) -> LabelCounts:
    """Count the predicted and the positive labels of each image.

    Compare the counts of two recognizers, for example before and after self-training, to see how
    the number of predicted labels changes.

    Args:
        probabilities: Probabilities of n images and c labels in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown. If None, positive
            labels are not counted.
        known: True where the target is known, ``(n, c)``. Labels with an unknown target are left
            out. If None, all targets except NaN are known.
        threshold: Minimum probability of a predicted label, as one number or as one number per
            label, ``(c,)``.

    Raises:
        InputError: If the shapes differ, if there is no image, if a probability is NaN or outside
            [0, 1], or if a known target is outside [0, 1].
        ConfigError: If a threshold is outside [0, 1], or if the number of thresholds is neither 1
            nor the number of labels.

    Example:
        >>> p, y = [[0.9, 0.6, 0.1], [0.7, 0.2, 0.1]], [[1, 1, 0], [1, 1, 1]]
        >>> counts = count_labels_per_image(p, y)
        >>> counts.means
        {'expected': 1.3, 'predicted': 1.5, 'positive': 2.5}
        >>> round(counts.excess, 2), counts.histograms["predicted"].tolist()
        (-0.4, [0, 1, 1, 0])
    """
    p, y, known = validate_labels_per_image_targets(probabilities, targets, known)
    predicted = predict_labels_per_image(p, threshold) & known
    return LabelCounts(
        expected=(p * known).sum(axis=1),
        predicted=predicted.sum(axis=1),
        positive=None if y is None else y.sum(axis=1),
    )


def validate_labels_per_image_targets(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike | None, known: npt.ArrayLike | None
) -> tuple[Array, Array | None, Flags]:
    """Return probabilities, targets or None, and a mask of known targets, each ``(n, c)``.

    Raises:
        InputError: If the shapes differ, if there is no image, if a probability is NaN or outside
            [0, 1], or if a known target is outside [0, 1].
    """
    targets_or_zeros = np.zeros(np.shape(probabilities)) if targets is None else targets
    p, y, known = validate_probability_metric_inputs(probabilities, targets_or_zeros, known)
    if not len(p):
        raise InputError(
            "probabilities must have at least one image; got an empty array. Add images."
        )
    return p, None if targets is None else y, known


def predict_labels_per_image(probabilities: Array, threshold: float | npt.ArrayLike) -> Flags:
    """Return True where a probability is at or above the threshold of its label, ``(n, c)``.

    Raises:
        ConfigError: If a threshold is outside [0, 1], or if the number of thresholds is neither 1
            nor the number of labels.
    """
    thresholds = np.asarray(threshold, dtype=np.float64)
    if thresholds.shape not in ((), probabilities.shape[1:]):
        raise ConfigError(
            "threshold must be one number, or one number for each of "
            f"{format_count(probabilities.shape[1], 'label')}; got shape {thresholds.shape}."
        )
    if not ((thresholds >= 0) & (thresholds <= 1)).all():
        raise ConfigError(f"threshold must be a probability in [0, 1]; got {threshold!r}.")
    predicted: Flags = probabilities >= thresholds
    return predicted
