"""Balanced accuracy at a probability threshold: positives and negatives have equal weight."""

import numpy.typing as npt

from surelabel.metrics.arrays.nan_division import divide_or_nan, mean_ignoring_nan
from surelabel.metrics.thresholding.confusion_counts import confusion_counts
from surelabel.records import Array


def balanced_accuracy(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float = 0.5,
) -> float:
    """Return the balanced accuracy, averaged over classes.

        balanced accuracy of a class = (true positive rate + true negative rate) / 2

    If no label is predicted or if predictions are random, the balanced accuracy is 0.5.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        threshold: Smallest probability that is predicted positive, in [0, 1].

    Returns:
        Mean balanced accuracy in [0, 1] over the classes with a known positive and a known
        negative, where 1 is best. If no class has a known positive and a known negative, the value
        is NaN.

    Raises:
        InputError: If the shapes differ, a probability is NaN or outside [0, 1], or a known
            target is neither 0 nor 1.
        ConfigError: If ``threshold`` is outside [0, 1].

    Source:
        Brodersen et al., The Balanced Accuracy and Its Posterior Distribution, ICPR 2010.

    Differs:
        A class without a positive or without a negative is left out. For such a class
        scikit-learn warns and returns the rate that is defined.

    Example:
        >>> balanced_accuracy([[0.9], [0.2], [0.6], [0.4]], [[1], [0], [0], [1]])
        0.5
    """
    return mean_ignoring_nan(
        balanced_accuracy_per_class(probabilities, targets, known, threshold=threshold)
    )


def balanced_accuracy_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float = 0.5,
) -> Array:
    """Return the balanced accuracy of each class, ``(c,)``.

    The value is NaN for a class without a known positive or without a known negative.

    Source:
        ``balanced_accuracy`` of each column.
    """
    true_positives, positives, true_negatives, negatives = confusion_counts(
        probabilities, targets, known, threshold
    )
    true_positive_rate = divide_or_nan(true_positives, positives)
    return (true_positive_rate + divide_or_nan(true_negatives, negatives)) / 2
