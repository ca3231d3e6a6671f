"""Compute the improvement of the Brier score over predicting the class prevalence."""

import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.squared_error.squared_error_sums import squared_error_sums


def brier_skill(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Return the relative improvement of the Brier score over predicting the class prevalence.

        S = 1 - Σ (p - y)² / Σ (prevalence of the class - y)²

    where p is the probability and y is the target of a label. The prevalence of a class is the
    fraction of positives among its known targets. The Brier skill of a model that predicts only the
    prevalence of each class is 0, and that of a perfect model is 1.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Brier skill, at most 1. The value is negative if the model is worse than predicting the
        prevalence, and NaN if all known targets of each class are equal.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.

    Source:
        Murphy, Skill Scores Based on the Mean Square Error and Their Relationships to the
        Correlation Coefficient, Monthly Weather Review, 1988. The reference forecast is the
        climatology, which is the prevalence here.

    Example:
        >>> round(brier_skill([[0.9], [0.2]], [[1], [0]]), 4)
        0.9
    """
    errors, reference, _ = squared_error_sums(probabilities, targets, known)
    return float(1 - divide_or_nan(errors.sum(), reference.sum()))


def brier_skill_per_class(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """Return ``brier_skill`` for each of the c classes, ``(c,)``.

    If all known targets of a class are equal, the value of the class is NaN.

    Source:
        See ``brier_skill``, computed here for each column.
    """
    errors, reference, _ = squared_error_sums(probabilities, targets, known)
    return 1 - divide_or_nan(errors, reference)
