"""Compute the average calibration error (ACE), in which each bin has the same weight."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.binning.reliability_bins import (
    reliability_bins,
    reliability_bins_per_class,
)


def ace(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    min_count: int = 1,
) -> float:
    """Return the average calibration error over all labels of all images.

        ACE = mean over bins with n_b >= min_count of  |accuracy_b - confidence_b|

    where bin b contains n_b known targets, accuracy_b is the fraction of positives in the bin and
    confidence_b is the mean probability in the bin. The gap |accuracy_b - confidence_b| of
    a bin with a single known target may be as large as 1 by chance. Set ``min_count``, for example
    to 20, to leave out bins with few known targets.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1.
        min_count: Smallest number of known targets in a bin, >= 1. Bins with fewer known targets
            are left out.

    Returns:
        Calibration error in [0, 1], where 0 is best. If no bin has at least ``min_count`` known
        targets, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` or ``min_count`` is not a whole number >= 1.

    Source:
        Neumann, Zisserman and Vedaldi, Relaxed Softmax, NeurIPS workshop on machine learning for
        intelligent transportation systems, 2018. The formula is that of the package netcal.

    Differs:
        The adaptive calibration error, which uses equal-mass bins, has the same abbreviation; see
        ``adaptive_ece``. Bins with fewer than ``min_count`` known targets are left out of the mean.
        In netcal, the gap of bins below ``sample_threshold`` is 0, and the mean includes these
        bins.

    Example:
        >>> round(ace([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.25
        >>> round(ace([[0.1, 0.9, 0.9]], [[0, 1, 0]], min_count=2), 4)
        0.4
    """
    binned = reliability_bins(probabilities, targets, known, bins=bins)
    return float(_ace_of_gaps(binned.gaps_with_min_count(min_count)))


def ace_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    min_count: int = 1,
) -> Array:
    """Return ``ace`` for each of the c classes, ``(c,)``.

    If no bin of a class has at least ``min_count`` known targets, the value of the class is NaN.

    Source:
        See ``ace``, computed here for each column.
    """
    binned = reliability_bins_per_class(probabilities, targets, known, bins=bins)
    return _ace_of_gaps(binned.gaps_with_min_count(min_count))


def _ace_of_gaps(gaps: Array) -> Array:
    """Return the mean of the gaps that are not NaN."""
    return divide_or_nan(np.nansum(gaps, axis=-1), np.count_nonzero(~np.isnan(gaps), axis=-1))
