"""Brier skill score: improvement of the Brier score over predicting the class prevalence."""

import numpy.typing as npt

from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.squared_error.squared_error_sums import squared_error_sums
from surelabel.records import Array


def brier_skill(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Return the relative improvement of the Brier score over predicting the class prevalence.

        S = 1 - Σ (p - y)² / Σ (prevalence of the class - y)²

    The prevalence of each class is computed from the same known targets. A model that predicts
    only the prevalence of each class scores about 0, a perfect model 1.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.

    Returns:
        Brier skill, at most 1, negative if worse than the prevalence; NaN if the known targets of
        each class are all equal.

    Raises:
        InputError: If the shapes differ, a probability is NaN or outside [0, 1], or a known
            target is outside [0, 1].

    Source:
        Murphy, Skill Scores Based on the Mean Square Error and Their Relationships to the
        Correlation Coefficient, Monthly Weather Review, 1988; reference: climatology.

    Example:
        >>> round(brier_skill([[0.9], [0.2]], [[1], [0]]), 4)
        0.9
    """
    errors, reference, _ = squared_error_sums(probabilities, targets, known)
    return float(1 - divide_or_nan(errors.sum(), reference.sum()))


def brier_skill_per_class(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """Return ``brier_skill`` of each class, ``(c,)``; NaN if all its known targets are equal.

    Source:
        ``brier_skill`` of each column.
    """
    errors, reference, _ = squared_error_sums(probabilities, targets, known)
    return 1 - divide_or_nan(errors, reference)
