"""Compute the accuracy at a probability threshold."""

import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.thresholding.confusion_counts import confusion_counts


def accuracy(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float = 0.5,
) -> float:
    """Return the fraction of correct predictions at a threshold, over all labels of all images.

    Most labels are negative in most images. If 3 of 80 labels are positive, a model that predicts
    no label has an accuracy of 0.96. Report accuracy together with ``balanced_accuracy``.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        threshold: Smallest probability at which a label is predicted positive, in [0, 1].

    Returns:
        Accuracy in [0, 1], where 1 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is neither 0 nor 1, or ``known`` is not Boolean.
        ConfigError: If ``threshold`` is outside [0, 1].

    Source:
        One minus the Hamming loss: Schapire and Singer, Improved Boosting Algorithms Using
        Confidence-rated Predictions, Machine Learning, 1999.

    Example:
        >>> accuracy([[0.9, 0.2, 0.1, 0.4]], [[1, 0, 0, 1]])
        0.75
    """
    true_positives, positives, true_negatives, negatives = confusion_counts(
        probabilities, targets, known, threshold
    )
    correct = true_positives + true_negatives
    return float(divide_or_nan(correct.sum(), (positives + negatives).sum()))


def accuracy_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float = 0.5,
) -> Array:
    """Return ``accuracy`` for each of the c classes, ``(c,)``.

    The value of a class without known targets is NaN.

    Source:
        See ``accuracy``, computed here for each column.
    """
    true_positives, positives, true_negatives, negatives = confusion_counts(
        probabilities, targets, known, threshold
    )
    return divide_or_nan(true_positives + true_negatives, positives + negatives)
