"""Average calibration error (ACE): each bin has the same weight."""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.binning.reliability_bins import (
    reliability_bins,
    reliability_bins_per_class,
)
from surelabel.records import Array


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
    confidence_b is the mean probability. The gap of a bin with a single label may be as large as 1
    by chance. Set ``min_count``, for example to 20, to leave out bins with few labels.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1; the last bin includes 1.
        min_count: Smallest number of known targets in a bin, >= 1; smaller bins are left out.

    Returns:
        Calibration error in [0, 1], where 0 is best. If no bin has ``min_count`` known targets,
        the value is NaN.

    Raises:
        InputError: If the shapes differ, a probability is NaN or outside [0, 1], or a known
            target is outside [0, 1].
        ConfigError: If ``bins`` or ``min_count`` is not a whole number >= 1.

    Source:
        Neumann, Zisserman and Vedaldi, Relaxed Softmax, NeurIPS workshop on machine learning for
        intelligent transportation systems, 2018, as netcal computes it.

    Differs:
        Not the adaptive calibration error, with equal-mass bins, which shares the abbreviation.
        Bins below ``min_count`` are left out of the mean; netcal's ``sample_threshold`` counts
        them as 0.

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
    """Return ``ace`` of each class, ``(c,)``.

    If no bin of a class has ``min_count`` known targets, the value of the class is NaN.

    Source:
        ``ace`` of each column.
    """
    binned = reliability_bins_per_class(probabilities, targets, known, bins=bins)
    return _ace_of_gaps(binned.gaps_with_min_count(min_count))


def _ace_of_gaps(gaps: Array) -> Array:
    """Return the mean over the bins whose gap is not NaN."""
    return divide_or_nan(np.nansum(gaps, axis=-1), np.count_nonzero(~np.isnan(gaps), axis=-1))
