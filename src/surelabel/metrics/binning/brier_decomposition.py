"""Decompose the Brier score into reliability, resolution and uncertainty."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.metrics.arrays.input_validation import validate_probability_metric_inputs
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.binning.reliability_bins import (
    ReliabilityBins,
    reliability_bins,
    reliability_bins_per_class,
)
from surelabel.metrics.brier import brier, brier_per_class


@dataclass(frozen=True)
class BrierDecomposition:
    """Terms of the Brier score, which equals reliability - resolution + uncertainty + within_bins.

    Each term is one number, or an array with one number per class, ``(c,)``.

    Attributes:
        reliability: Squared difference between fraction of positives and mean probability of a bin,
            averaged over bins with the bin counts as weights. The best value is 0. The reliability
            is equal to ``squared_calibration_error``.
        resolution: Squared difference between fraction of positives of a bin and overall fraction
            of positives, averaged over bins with the bin counts as weights. Higher is better.
        uncertainty: Variance of the targets, which does not depend on the model.
        within_bins: Variance of the probabilities within bins minus twice the covariance of
            probabilities and targets within bins. The term is negative if the covariance is more
            than half of the variance.
    """

    reliability: Array
    resolution: Array
    uncertainty: Array
    within_bins: Array

    @property
    def refinement(self) -> Array:
        """Return the refinement of the predictions: uncertainty minus resolution."""
        return self.uncertainty - self.resolution

    @property
    def brier_score(self) -> Array:
        """Return the Brier score: the sum of reliability, refinement and within_bins."""
        return self.reliability + self.refinement + self.within_bins


def brier_decomposition(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> BrierDecomposition:
    """Decompose the Brier score of all labels of all images into terms over probability bins.

        Brier = Σ_b n_b/N (accuracy_b - confidence_b)²  -  Σ_b n_b/N (accuracy_b - accuracy)²
                + variance of targets  +  within_bins

    where bin b contains n_b of the N known targets, accuracy_b is the fraction of positives in the
    bin and confidence_b is the mean probability in the bin. The symbol accuracy without index is
    the fraction of positives among all known targets. The term within_bins is the Brier score minus
    the Brier score after each probability is replaced by the mean probability of its bin.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1.

    Returns:
        Four terms of the Brier score: reliability, resolution, uncertainty and within_bins. If no
        target is known, the terms are NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Murphy, A New Vector Partition of the Probability Score, Journal of Applied Meteorology,
        1973; the term within bins: Stephenson, Coelho and Jolliffe, Two Extra Components in the
        Brier Score Decomposition, Weather and Forecasting, 2008.

    Differs:
        Uncertainty is the variance of the targets, which equals accuracy · (1 - accuracy) for
        targets 0 and 1. The decomposition therefore also holds for graded targets (between 0 and
        1).

    Example:
        >>> parts = brier_decomposition([[0.1, 0.3, 0.8, 0.8]], [[0, 0, 1, 0]], bins=2)
        >>> [round(float(x), 4) for x in (parts.reliability, parts.resolution)]
        [0.065, 0.0625]
        >>> [round(float(x), 4) for x in (parts.uncertainty, parts.within_bins, parts.brier_score)]
        [0.1875, 0.005, 0.195]
    """
    brier_score = np.asarray(brier(probabilities, targets, known))
    binned = reliability_bins(probabilities, targets, known, bins=bins)
    _, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    return _decompose_brier_score(brier_score, binned, _brier_uncertainty(y, known, axis=None))


def brier_decomposition_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> BrierDecomposition:
    """Return ``brier_decomposition`` for each of the c classes, with terms of shape ``(c,)``.

    If a class has no known target, the terms of the class are NaN.

    Source:
        See ``brier_decomposition``, computed here for each column.
    """
    brier_score = brier_per_class(probabilities, targets, known)
    binned = reliability_bins_per_class(probabilities, targets, known, bins=bins)
    _, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    return _decompose_brier_score(brier_score, binned, _brier_uncertainty(y, known))


def _decompose_brier_score(
    brier_score: Array, bins: ReliabilityBins, uncertainty: Array
) -> BrierDecomposition:
    """Return the terms, where within_bins is the remainder of the Brier score."""
    total = bins.counts.sum(axis=-1)
    positives = np.where(bins.counts > 0, bins.counts * bins.accuracy, 0.0)
    overall_accuracy = divide_or_nan(positives.sum(axis=-1), total)
    deviation = bins.accuracy - overall_accuracy[..., None]
    calibration = divide_or_nan(np.nansum(bins.counts * bins.gaps**2, axis=-1), total)
    resolution = divide_or_nan(np.nansum(bins.counts * deviation**2, axis=-1), total)
    within_bins = brier_score - (calibration - resolution + uncertainty)
    return BrierDecomposition(calibration, resolution, uncertainty, within_bins)


def _brier_uncertainty(y: Array, known: Flags, axis: int | None = 0) -> Array:
    """Return the variance of the known targets; unknown targets must be 0 in ``y``."""
    n_known = known.sum(axis=axis)
    mean = divide_or_nan(y.sum(axis=axis), n_known)
    return divide_or_nan((y * y).sum(axis=axis), n_known) - mean**2
