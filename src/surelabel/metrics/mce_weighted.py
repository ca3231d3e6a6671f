"""Compute the largest term of the expected calibration error."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.binning.reliability_bins import (
    ReliabilityBins,
    reliability_bins,
    reliability_bins_per_class,
)


def mce_weighted(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return the largest single term of the expected calibration error.

        max over bins of  n_b / N · |accuracy_b - confidence_b|

    where bin b contains n_b of the N known targets, accuracy_b is the fraction of positives in the
    bin and confidence_b is the mean probability in the bin. The largest term never exceeds ``ece``.
    To compute the largest gap of a bin without weights, use ``mce``, which is never below ``ece``.
    If a published "MCE" is below the ECE, it is therefore a weighted error.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1.

    Returns:
        Largest term in [0, 1], where 0 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        The released code of Xiong et al., Proximity-Informed Calibration for Deep Neural Networks,
        NeurIPS 2023, arXiv:2306.04590. The code calls this metric MCE.

    Example:
        >>> round(mce_weighted([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.2667
    """
    return float(_mce_weighted_of_bins(reliability_bins(probabilities, targets, known, bins=bins)))


def mce_weighted_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """Return ``mce_weighted`` for each of the c classes, ``(c,)``.

    The value of a class without known targets is NaN.

    Source:
        See ``mce_weighted``, computed here for each column.
    """
    return _mce_weighted_of_bins(
        reliability_bins_per_class(probabilities, targets, known, bins=bins)
    )


def _mce_weighted_of_bins(bins: ReliabilityBins) -> Array:
    """Return the largest product of the gap of a bin and its fraction of the known targets."""
    weighted_gaps = np.where(bins.counts > 0, bins.counts * bins.gaps, 0.0)
    return divide_or_nan(weighted_gaps.max(axis=-1), bins.counts.sum(axis=-1))
