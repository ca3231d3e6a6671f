"""Compute the balanced accuracy, in which positives and negatives have equal weight."""

import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.nan_division import divide_or_nan, mean_ignoring_nan
from surelabel.metrics.thresholding.confusion_counts import confusion_counts


def balanced_accuracy(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float = 0.5,
) -> float:
    """Return the balanced accuracy, averaged over classes.

        balanced accuracy of a class = (true positive rate + true negative rate) / 2

    The balanced accuracy is 0.5 if no label is predicted, and about 0.5 if predictions are random.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        threshold: Smallest probability at which a label is predicted positive, in [0, 1].

    Returns:
        Mean balanced accuracy in [0, 1] over the classes with a known positive and a known
        negative, where 1 is best. If no class has a known positive and a known negative, the value
        is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is neither 0 nor 1, or ``known`` is not Boolean.
        ConfigError: If ``threshold`` is outside [0, 1].

    Source:
        Brodersen et al., The Balanced Accuracy and Its Posterior Distribution, ICPR 2010.

    Differs:
        A class without a known positive or without a known negative is left out. For such a class,
        scikit-learn returns the only rate that is defined.

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
    """Return the balanced accuracy of each of the c classes, ``(c,)``.

    The value is NaN for a class without a known positive or without a known negative.

    Source:
        See ``balanced_accuracy``, computed here for each column.
    """
    true_positives, positives, true_negatives, negatives = confusion_counts(
        probabilities, targets, known, threshold
    )
    true_positive_rate = divide_or_nan(true_positives, positives)
    return (true_positive_rate + divide_or_nan(true_negatives, negatives)) / 2
