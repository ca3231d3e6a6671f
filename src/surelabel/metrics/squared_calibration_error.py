"""Compute the mean squared gap of the bins, with the bin counts as weights."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.binning.reliability_bins import (
    ReliabilityBins,
    reliability_bins,
    reliability_bins_per_class,
)


def squared_calibration_error(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return the mean squared gap of the bins, the part of the Brier score due to miscalibration.

        Σ_b  n_b / N · (accuracy_b - confidence_b)²

    where bin b contains n_b of the N known targets, accuracy_b is the fraction of positives in the
    bin and confidence_b is the mean probability in the bin. The gap of bin b is the difference
    accuracy_b - confidence_b. Sampling noise increases the squared calibration error. To remove the
    bias of sampling noise, use ``squared_calibration_error_debiased``.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1.

    Returns:
        Squared calibration error in [0, 1], where 0 is best. If no target is known, the value is
        NaN. The square root of the squared calibration error is the l2 calibration error of
        torchmetrics.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Murphy, A New Vector Partition of the Probability Score, Journal of Applied Meteorology,
        1973. The paper calls this term reliability.

    Example:
        >>> round(squared_calibration_error([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.11
    """
    binned = reliability_bins(probabilities, targets, known, bins=bins)
    return float(_squared_calibration_error_of_bins(binned))


def squared_calibration_error_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """Return ``squared_calibration_error`` for each of the c classes, ``(c,)``.

    The value of a class without known targets is NaN.

    Source:
        See ``squared_calibration_error``, computed here for each column.
    """
    binned = reliability_bins_per_class(probabilities, targets, known, bins=bins)
    return _squared_calibration_error_of_bins(binned)


def _squared_calibration_error_of_bins(bins: ReliabilityBins) -> Array:
    """Return the mean squared gap of the bins, weighted by bin counts."""
    weighted_squares = np.where(bins.counts > 0, bins.counts * bins.gaps**2, 0.0)
    return divide_or_nan(weighted_squares.sum(axis=-1), bins.counts.sum(axis=-1))
