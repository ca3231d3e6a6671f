"""Largest term of the expected calibration error."""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.binning.reliability_bins import (
    ReliabilityBins,
    reliability_bins,
    reliability_bins_per_class,
)
from surelabel.records import Array


def mce_weighted(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return the largest single term of the expected calibration error.

        max over bins of  n_b / n · |accuracy_b - confidence_b|

    where bin b contains n_b of the n known targets, accuracy_b is the fraction of positives in the
    bin and confidence_b is the mean probability. The largest term never exceeds ``ece``. To
    compute the largest gap of a bin without weights, use ``mce``. Published values of "MCE" below
    the ECE were computed with weighted terms.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1; the last bin includes 1.

    Returns:
        Largest term in [0, 1], where 0 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the shapes differ, a probability is NaN or outside [0, 1], or a known
            target is outside [0, 1].
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        The released code of Xiong et al., Proximity-Informed Calibration for Deep Neural Networks,
        NeurIPS 2023, arXiv:2306.04590, where it is called MCE.

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
    """Return ``mce_weighted`` of each class, ``(c,)``.

    The value of a class without known targets is NaN.

    Source:
        ``mce_weighted`` of each column.
    """
    return _mce_weighted_of_bins(
        reliability_bins_per_class(probabilities, targets, known, bins=bins)
    )


def _mce_weighted_of_bins(bins: ReliabilityBins) -> Array:
    """Return the largest gap of a bin, weighted by its fraction of the counts."""
    weighted_gaps = np.where(bins.counts > 0, bins.counts * bins.gaps, 0.0)
    return divide_or_nan(weighted_gaps.max(axis=-1), bins.counts.sum(axis=-1))
