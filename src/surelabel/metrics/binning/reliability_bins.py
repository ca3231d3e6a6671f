"""Compute count, mean probability and fraction of positives of each probability bin."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.metrics.arrays.input_validation import (
    validate_metric_whole_number,
    validate_probability_metric_inputs,
)
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.arrays.row_blocks import iterate_row_blocks


@dataclass(frozen=True)
class ReliabilityBins:
    """Equal-width bins of probabilities, [k/bins, (k+1)/bins), where the last bin includes 1.

    Attributes:
        counts: Number of known targets in each bin, ``(bins,)`` or, for c classes, ``(c, bins)``.
        confidence: Mean probability in each bin, or NaN if the bin is empty, with the shape of
            ``counts``.
        accuracy: Fraction of positives in each bin, or NaN if the bin is empty, with the shape of
            ``counts``.
    """

    counts: Array
    confidence: Array
    accuracy: Array

    @property
    def gaps(self) -> Array:
        """Return the absolute difference between accuracy and confidence, NaN for an empty bin."""
        return np.abs(self.accuracy - self.confidence)

    def gaps_with_min_count(self, min_count: int) -> Array:
        """Return the gap of each bin, or NaN if the bin has fewer than ``min_count`` known targets.

        Raises:
            ConfigError: If ``min_count`` is not a whole number >= 1.
        """
        min_count = validate_metric_whole_number("min_count", min_count)
        return np.where(self.counts >= min_count, self.gaps, np.nan)


def reliability_bins(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> ReliabilityBins:
    """Bin all labels of all images by probability and return the reliability bins.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1.

    Returns:
        Count, confidence (mean probability) and accuracy (fraction of positives) of each bin,
        ``(bins,)`` each.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian
        Binning, AAAI 2015; computed here from the probability of each label, not of the top-1
        prediction.

    Example:
        >>> bins = reliability_bins([[0.1, 0.9]], [[0, 1]], bins=2)
        >>> bins.counts, bins.confidence, bins.accuracy
        (array([1., 1.]), array([0.1, 0.9]), array([0., 1.]))
    """
    counts, confidence, accuracy = _reliability_bin_sums(probabilities, targets, known, bins).sum(
        axis=1
    )
    return ReliabilityBins(
        counts, divide_or_nan(confidence, counts), divide_or_nan(accuracy, counts)
    )


def reliability_bins_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> ReliabilityBins:
    """Return ``reliability_bins`` for each of the c classes, with arrays of shape ``(c, bins)``.

    Source:
        See ``reliability_bins``, computed here for each column.
    """
    counts, confidence, accuracy = _reliability_bin_sums(probabilities, targets, known, bins)
    return ReliabilityBins(
        counts, divide_or_nan(confidence, counts), divide_or_nan(accuracy, counts)
    )


def _reliability_bin_sums(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None, bins: int
) -> Array:
    """Return counts, summed probabilities and summed targets, ``(3, c, bins)``."""
    bins = validate_metric_whole_number("bins", bins)
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    sums = np.zeros((3, p.shape[1], bins))
    for block in iterate_row_blocks(p, y, known):
        sums += _reliability_bin_sums_of_block(*block, bins=bins)
    return sums


def _reliability_bin_sums_of_block(p: Array, y: Array, known: Flags, *, bins: int) -> Array:
    """Return counts, summed probabilities and summed targets of a block, ``(3, c, bins)``."""
    n_classes = p.shape[1]
    cell = _assign_reliability_bins(p, bins)
    cell += np.arange(n_classes) * bins
    if known.all():
        cell, p, y = cell.ravel(), p.ravel(), y.ravel()
    else:
        cell, p, y = cell[known], p[known], y[known]
    positive = np.flatnonzero(y > 0)  # targets of 0 do not change the sums
    sums = [
        np.bincount(cell, minlength=n_classes * bins),
        np.bincount(cell, p, n_classes * bins),
        np.bincount(cell.take(positive), y.take(positive), n_classes * bins),
    ]
    return np.array(sums, dtype=float).reshape(3, n_classes, bins)


def _assign_reliability_bins(p: Array, bins: int) -> npt.NDArray[np.intp]:
    """Return the bin of each probability, corrected for rounding errors of p · bins at edges."""
    position = p * bins
    whole = np.floor(position)
    bin_index = whole.astype(np.intp)
    position -= whole
    if position.min(initial=1) < 1e-9 or position.max(initial=0) > 1 - 1e-9:
        near_edge = (position < 1e-9) | (position > 1 - 1e-9)
        edges = np.arange(1, bins) / bins
        bin_index[near_edge] = np.searchsorted(edges, p[near_edge], side="right")
    return bin_index
