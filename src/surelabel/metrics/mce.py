"""Maximum calibration error (MCE)."""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.binning.reliability_bins import (
    reliability_bins,
    reliability_bins_per_class,
)
from surelabel.records import Array


def mce(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    min_count: int = 1,
) -> float:
    """Return the largest calibration gap of a bin, with all labels of all images pooled.

        MCE = max over bins with n_b >= min_count of  |accuracy_b - confidence_b|

    A bin of one label has a gap of up to 1 by chance alone. Set ``min_count``, for example to 20,
    to leave out such bins.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.
        bins: Number of equal-width bins on [0, 1], >= 1; the last bin includes 1.
        min_count: Smallest number of known targets of a bin that counts, >= 1.

    Returns:
        Calibration error in [0, 1], 0 is best; NaN if no bin has ``min_count`` known targets.

    Raises:
        InputError: If the shapes differ, a probability is NaN or outside [0, 1], or a known
            target is outside [0, 1].
        ConfigError: If ``bins`` or ``min_count`` is not a whole number >= 1.

    Source:
        Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian
        Binning, AAAI 2015; ``min_count`` is netcal's ``sample_threshold``.

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
    """Return ``mce`` of each class, ``(c,)``; NaN for a class without a bin that counts.

    Source:
        ``mce`` of each column.
    """
    binned = reliability_bins_per_class(probabilities, targets, known, bins=bins)
    widest: Array = np.fmax.reduce(binned.gaps_with_min_count(min_count), axis=-1)
    return widest
