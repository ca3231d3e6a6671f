"""Number of labels per image: expected, predicted and positive."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.errors import ConfigError, InputError
from surelabel.metrics.arrays.input_validation import validate_probabilities
from surelabel.records import Array, Flags

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LabelCounts:
    """Number of labels of each image; with targets, only labels with a known target count.

    Attributes:
        expected: Sum of the probabilities, ``(n,)``.
        predicted: Number of labels at or above the threshold, ``(n,)``.
        positive: Sum of the targets, ``(n,)``; None without targets.
    """

    expected: Array
    predicted: Counts
    positive: Array | None

    @property
    def means(self) -> dict[str, float]:
        """Mean labels per image: ``expected``, ``predicted`` and, with targets, ``positive``."""
        counts = {
            "expected": self.expected,
            "predicted": self.predicted,
            "positive": self.positive,
        }
        return {name: float(np.mean(c)) for name, c in counts.items() if c is not None}

    @property
    def excess(self) -> float:
        """Excess of predicted labels as a share of the positive ones; -0.2 is a fifth too few.

        The excess is NaN without positive labels or without targets.
        """
        if self.positive is None or not self.positive.sum():
            return float("nan")
        return float(self.predicted.sum() / self.positive.sum() - 1)

    @property
    def histograms(self) -> dict[str, Counts]:
        """Number of images with 0, 1, 2 … labels, ``predicted`` and ``positive``, ``(k,)`` each."""
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
    """Count the labels that are predicted for each image, and its positive labels.

    Compare the counts of two recognizers, for example before and after self-training, to see how
    the number of predicted labels changes.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown. None if there are no
            targets.
        known: True where the target is known, ``(n, c)``; other labels do not count.
        threshold: Least probability of a predicted label: one number, or one per label ``(c,)``.

    Raises:
        InputError: If the shapes differ, if there is no image, or if a value is NaN or outside
            [0, 1].
        ConfigError: If a threshold is outside [0, 1].

    Example:
        >>> p, y = [[0.9, 0.6, 0.1], [0.7, 0.2, 0.1]], [[1, 1, 0], [1, 1, 1]]
        >>> counts = count_labels_per_image(p, y)
        >>> counts.means
        {'expected': 1.3, 'predicted': 1.5, 'positive': 2.5}
        >>> round(counts.excess, 2), counts.histograms["predicted"].tolist()
        (-0.4, [0, 1, 1, 0])
    """
    p, y, known = validate_optional_targets(probabilities, targets, known)
    predicted = apply_thresholds(p, threshold) & known
    return LabelCounts(
        expected=(p * known).sum(axis=1),
        predicted=predicted.sum(axis=1),
        positive=None if y is None else y.sum(axis=1),
    )


def validate_optional_targets(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike | None, known: npt.ArrayLike | None
) -> tuple[Array, Array | None, Flags]:
    """Return probabilities, targets (0 where unknown) or None, and known flags, each ``(n, c)``.

    Raises:
        InputError: If the shapes differ, if there is no image, or if a value is NaN or outside
            [0, 1].
    """
    targets_or_zeros = np.zeros(np.shape(probabilities)) if targets is None else targets
    p, y, known = validate_probabilities(probabilities, targets_or_zeros, known)
    if not len(p):
        raise InputError("probabilities must have at least one image; got none.")
    return p, None if targets is None else y, known


def apply_thresholds(probabilities: Array, threshold: float | npt.ArrayLike) -> Flags:
    """Return True where a probability is at or above the threshold of its label, ``(n, c)``.

    Raises:
        ConfigError: If a threshold is outside [0, 1], or if their number differs from that of the
            labels.
    """
    thresholds = np.asarray(threshold, dtype=np.float64)
    if thresholds.shape not in ((), probabilities.shape[1:]):
        raise ConfigError(
            f"threshold must be one number, or one for each of {probabilities.shape[1]} labels; "
            f"got shape {thresholds.shape}."
        )
    if not ((thresholds >= 0) & (thresholds <= 1)).all():
        raise ConfigError(f"threshold must be a probability in [0, 1]; got {threshold!r}.")
    predicted: Flags = probabilities >= thresholds
    return predicted
