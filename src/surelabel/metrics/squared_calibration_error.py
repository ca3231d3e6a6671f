"""Squared calibration error: mean squared gap of reliability, weighted by the size of the bins."""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.ratio import ratio
from surelabel.metrics.reliability import Reliability, reliability, reliability_per_class
from surelabel.records import Array


def squared_calibration_error(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Mean squared gap of all decisions: the part of the Brier score that calibration can cure.

        Σ_b  n_b / n · (accuracy_b - confidence_b)²

    Chance makes it larger; ``squared_calibration_error_debiased`` takes that away.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        bins: Bins of equal width on [0, 1], the last one closed, >= 1.

    Returns:
        A number in [0, 1], 0 is best; NaN when nothing is known. Its root is what torchmetrics
        calls the calibration error of norm l2.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].
        ConfigError: ``bins`` is not a whole number of at least 1.

    Source:
        Murphy, A New Vector Partition of the Probability Score, Journal of Applied Meteorology,
        1973: reliability.

    Example:
        >>> round(squared_calibration_error([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.11
    """
    return float(_squared(reliability(probabilities, targets, known, bins=bins)))


def squared_calibration_error_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """``squared_calibration_error`` of every class, ``(c,)``; NaN where nothing is known.

    Source:
        As ``squared_calibration_error``, class by class.
    """
    return _squared(reliability_per_class(probabilities, targets, known, bins=bins))


def _squared(bins: Reliability) -> Array:
    terms = np.where(bins.counts > 0, bins.counts * bins.gaps**2, 0.0)
    return ratio(terms.sum(axis=-1), bins.counts.sum(axis=-1))
