"""Compute the expected calibration error (ECE).

Even for a calibrated model, the ECE of a finite sample is almost always above 0. Report the ECE
together with ``noise_floor`` and with ``brier_skill`` or ``log_loss``. A model that predicts only
the prevalence of each label has a small calibration error but no skill.
"""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.binning.reliability_bins import (
    ReliabilityBins,
    reliability_bins,
    reliability_bins_per_class,
)


def ece(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return the expected calibration error over all labels of all images.

        ECE = Σ_b  n_b / N · |accuracy_b - confidence_b|

    where bin b contains n_b of the N known targets, accuracy_b is the fraction of positives in the
    bin and confidence_b is the mean probability in the bin.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1.

    Returns:
        Calibration error in [0, 1], where 0 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian
        Binning, AAAI 2015. The accuracy of a bin is its fraction of positives.

    Differs:
        A probability of exactly 1 belongs to the last bin. In torchmetrics, there is a
        separate bin for this probability.

    Example:
        >>> round(ece([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.3
    """
    return float(_ece_of_bins(reliability_bins(probabilities, targets, known, bins=bins)))


def ece_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """Return ``ece`` for each of the c classes, ``(c,)``.

    The value of a class without known targets is NaN.

    Source:
        See ``ece``, computed here for each column.
    """
    return _ece_of_bins(reliability_bins_per_class(probabilities, targets, known, bins=bins))


def _ece_of_bins(bins: ReliabilityBins) -> Array:
    """Return the mean gap of the bins, weighted by their counts."""
    weighted_gaps = np.where(bins.counts > 0, bins.counts * bins.gaps, 0.0)
    return divide_or_nan(weighted_gaps.sum(axis=-1), bins.counts.sum(axis=-1))
