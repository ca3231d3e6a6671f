"""Squared calibration error: mean squared gap of the bins, weighted by their counts."""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.binning.reliability_bins import (
    ReliabilityBins,
    reliability_bins,
    reliability_bins_per_class,
)
from surelabel.records import Array


def squared_calibration_error(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return the mean squared gap of the bins: the part of the Brier score due to miscalibration.

        Σ_b  n_b / n · (accuracy_b - confidence_b)²

    Sampling noise increases the error; ``squared_calibration_error_debiased`` corrects for it.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.
        bins: Number of equal-width bins on [0, 1], >= 1; the last bin includes 1.

    Returns:
        Squared calibration error in [0, 1], 0 is best; NaN if no target is known. Its square root
        is the l2 calibration error of torchmetrics.

    Raises:
        InputError: If the shapes differ, a probability is NaN or outside [0, 1], or a known
            target is outside [0, 1].
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Murphy, A New Vector Partition of the Probability Score, Journal of Applied Meteorology,
        1973, where it is called reliability.

    Example:
        >>> round(squared_calibration_error([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.11
    """
    binned = reliability_bins(probabilities, targets, known, bins=bins)
    return float(_weighted_mean_squared_gap(binned))


def squared_calibration_error_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """Return ``squared_calibration_error`` of each class, ``(c,)``; NaN if no target is known.

    Source:
        ``squared_calibration_error`` of each column.
    """
    binned = reliability_bins_per_class(probabilities, targets, known, bins=bins)
    return _weighted_mean_squared_gap(binned)


def _weighted_mean_squared_gap(bins: ReliabilityBins) -> Array:
    """Return the mean squared gap of the bins, weighted by their counts."""
    weighted_squares = np.where(bins.counts > 0, bins.counts * bins.gaps**2, 0.0)
    return divide_or_nan(weighted_squares.sum(axis=-1), bins.counts.sum(axis=-1))
