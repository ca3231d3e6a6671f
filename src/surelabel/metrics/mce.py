"""Compute the maximum calibration error (MCE)."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.binning.reliability_bins import (
    reliability_bins,
    reliability_bins_per_class,
)


def mce(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    min_count: int = 1,
) -> float:
    """Return the largest gap between accuracy and confidence of a bin, over all labels and images.

        MCE = max over bins with n_b >= min_count of  |accuracy_b - confidence_b|

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
        Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian
        Binning, AAAI 2015; ``min_count`` corresponds to netcal's ``sample_threshold``.

    Example:
        >>> round(mce([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.4
        >>> round(mce([[0.3, 0.9, 0.9]], [[1, 1, 0]], min_count=2), 4)
        0.4
    """
    binned = reliability_bins(probabilities, targets, known, bins=bins)
    return float(np.fmax.reduce(binned.gaps_with_min_count(min_count)))


def mce_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    min_count: int = 1,
) -> Array:
    """Return ``mce`` for each of the c classes, ``(c,)``.

    If no bin of a class has at least ``min_count`` known targets, the value of the class is NaN.

    Source:
        See ``mce``, computed here for each column.
    """
    binned = reliability_bins_per_class(probabilities, targets, known, bins=bins)
    widest: Array = np.fmax.reduce(binned.gaps_with_min_count(min_count), axis=-1)
    return widest
