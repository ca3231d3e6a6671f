"""Compute the Brier score, which is the mean squared error of probabilities."""

import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.squared_error.squared_error_sums import squared_error_sums


def brier(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Return the mean squared difference between probability and target over all known targets.

        B = mean of (p - y)²

    where p is the probability and y is the target of a label.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Brier score in [0, 1], where 0 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.

    Source:
        Brier, Verification of Forecasts Expressed in Terms of Probability, Monthly Weather
        Review, 1950.

    Differs:
        Brier's score sums the squared differences of the positive and the negative outcome. Here
        only the positive outcome is used, so the value is half of Brier's score.

    Example:
        >>> round(brier([[0.9, 0.2]], [[1, 0]]), 4)
        0.025
    """
    errors, _, n_known = squared_error_sums(probabilities, targets, known)
    return float(divide_or_nan(errors.sum(), n_known.sum()))


def brier_per_class(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """Return ``brier`` for each of the c classes, ``(c,)``.

    The value of a class without known targets is NaN.

    Source:
        See ``brier``, computed here for each column.
    """
    errors, _, n_known = squared_error_sums(probabilities, targets, known)
    return divide_or_nan(errors, n_known)
