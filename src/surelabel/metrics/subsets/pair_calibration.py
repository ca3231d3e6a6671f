"""Compute the calibration error of the product of two label probabilities.

A search for "fork & knife" multiplies two probabilities, as if the labels were independent given
the image. Even if each probability is calibrated, the product of two probabilities may not be
calibrated. ``pair_ece`` measures the calibration error of the products.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, ColumnIndices, Flags
from surelabel.errors import ConfigError
from surelabel.metrics.arrays.input_validation import (
    validate_metric_whole_number,
    validate_probability_metric_inputs,
)
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.binning.reliability_bins import ReliabilityBins, reliability_bins

MAX_PRODUCTS = 1 << 20  # products held in memory at a time


def pair_ece(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    max_pairs: int = 5000,
    threshold: float = 0.0,
    seed: int = 0,
) -> float:
    """Return the expected calibration error of p_i · p_j over all label pairs of all images.

        for all labels i < j:   compare p_i · p_j with the target "i and j are positive"

    where p_i is the probability of label i. If the probabilities of single labels are calibrated,
    ``pair_ece`` measures the error of assuming independence. If the labels are also independent,
    ``noise_floor(pair_ece, probabilities)`` is an estimate of the expected value.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``. A pair is
            known if the targets of both labels are known.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1.
        max_pairs: Maximum number of label pairs, >= 1. If there are more label pairs, ``max_pairs``
            label pairs are sampled.
        threshold: Smallest product that is included, in [0, 1]. Most pairs are easy negatives,
            which make the error small. A threshold of 0.05 leaves out easy negatives.
        seed: Seed of the sampling of pairs.

    Returns:
        Calibration error in [0, 1], where 0 is best. If no known pair reaches the threshold,
        the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` or ``max_pairs`` is not a whole number >= 1, or ``threshold`` is
            outside [0, 1].

    Source:
        None; ours: ``ece`` of the products p_i · p_j. Images are ranked by these products in Cheng
        and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        section 5.3.

    Example:
        >>> round(pair_ece([[0.5, 0.5], [0.5, 0.5]], [[1, 1], [0, 0]]), 4)
        0.25
    """
    binned = pair_reliability_bins(
        probabilities,
        targets,
        known,
        bins=bins,
        max_pairs=max_pairs,
        threshold=threshold,
        seed=seed,
    )
    return _pair_ece_of_bins(binned)


def pair_ece_first_without_second(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    max_pairs: int = 10000,
    threshold: float = 0.0,
    seed: int = 0,
) -> float:
    """Return the expected calibration error of p_i · (1 - p_j) over all ordered label pairs.

        for all labels i ≠ j:   compare p_i · (1 - p_j) with the target "i is positive, j negative"

    where p_i is the probability of label i. An ordered pair of labels corresponds to a search such
    as "fork & !knife".

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``. A pair is
            known if the targets of both labels are known.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1.
        max_pairs: Maximum number of ordered label pairs, >= 1. If there are more label pairs,
            ``max_pairs`` label pairs are sampled.
        threshold: Smallest product that is included, in [0, 1].
        seed: Seed of the sampling of pairs.

    Returns:
        Calibration error in [0, 1], where 0 is best. If no known pair reaches the threshold,
        the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` or ``max_pairs`` is not a whole number >= 1, or ``threshold`` is
            outside [0, 1].

    Source:
        None; ours: ``pair_ece`` for products p_i · (1 - p_j) instead of p_i · p_j.

    Example:
        >>> p, y = [[0.5, 0.5], [0.5, 0.5]], [[1, 1], [0, 0]]
        >>> round(pair_ece_first_without_second(p, y), 4)
        0.25
    """
    binned = pair_reliability_bins_first_without_second(
        probabilities,
        targets,
        known,
        bins=bins,
        max_pairs=max_pairs,
        threshold=threshold,
        seed=seed,
    )
    return _pair_ece_of_bins(binned)


def pair_reliability_bins(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    max_pairs: int = 5000,
    threshold: float = 0.0,
    seed: int = 0,
) -> ReliabilityBins:
    """Return the reliability bins of the products in ``pair_ece``, ``(bins,)`` each.

    The arguments are those of ``pair_ece``.

    Source:
        None; ours: ``reliability_bins`` of the products of ``pair_ece``.
    """
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    n_classes = p.shape[1]
    pair_numbers = _sample_calibration_pairs(n_classes * (n_classes - 1) // 2, max_pairs, seed)
    # pairs are numbered 01 02 12 03 13 23 …
    second = np.floor((1 + np.sqrt(1 + 8 * pair_numbers)) / 2).astype(np.int64)
    first = pair_numbers - second * (second - 1) // 2
    return _pair_calibration_bins(
        _calibration_pair_product_blocks((p, p), (y, y), known, first, second), bins, threshold
    )


def pair_reliability_bins_first_without_second(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    max_pairs: int = 10000,
    threshold: float = 0.0,
    seed: int = 0,
) -> ReliabilityBins:
    """Return the reliability bins of ``pair_ece_first_without_second``, ``(bins,)`` each.

    The arguments are those of ``pair_ece_first_without_second``.

    Source:
        None; ours: ``reliability_bins`` of the products of ``pair_ece_first_without_second``.
    """
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    n_classes = p.shape[1]
    pair_numbers = _sample_calibration_pairs(n_classes * (n_classes - 1), max_pairs, seed)
    first, second = np.divmod(pair_numbers, max(n_classes - 1, 1))
    second += second >= first
    blocks = _calibration_pair_product_blocks((p, 1 - p), (y, 1 - y), known, first, second)
    return _pair_calibration_bins(blocks, bins, threshold)


def _sample_calibration_pairs(n_pairs: int, max_pairs: int, seed: int) -> ColumnIndices:
    """Return the indices of all pairs, or of ``max_pairs`` sampled pairs, in ascending order."""
    if n_pairs <= validate_metric_whole_number("max_pairs", max_pairs):
        return np.arange(n_pairs)
    stream = np.random.default_rng(seed).spawn(1)[0]
    return np.sort(stream.choice(n_pairs, size=int(max_pairs), replace=False, shuffle=False))


def _calibration_pair_product_blocks(
    p: tuple[Array, Array],
    y: tuple[Array, Array],
    known: Flags,
    first: ColumnIndices,
    second: ColumnIndices,
) -> Iterator[tuple[Array, Array, Flags]]:
    """Yield products, targets and known masks of blocks of label pairs, ``(n, pairs)`` each."""
    step = max(MAX_PRODUCTS // max(len(known), 1), 1)
    for start in range(0, max(len(first), 1), step):
        i, j = first[start : start + step], second[start : start + step]
        yield p[0][:, i] * p[1][:, j], y[0][:, i] * y[1][:, j], known[:, i] & known[:, j]


def _pair_calibration_bins(
    blocks: Iterator[tuple[Array, Array, Flags]], bins: int, threshold: float
) -> ReliabilityBins:
    """Return the reliability bins of all products that reach the threshold."""
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold must be a probability in [0, 1]; got {threshold}.")
    sums = np.zeros((3, validate_metric_whole_number("bins", bins)))
    for p, y, known in blocks:
        binned = reliability_bins(p, y, known & (p >= threshold), bins=bins)
        means = np.array([np.ones(bins), binned.confidence, binned.accuracy])
        sums += np.where(binned.counts > 0, binned.counts * means, 0.0)
    counts, confidence, accuracy = sums
    return ReliabilityBins(
        counts, divide_or_nan(confidence, counts), divide_or_nan(accuracy, counts)
    )


def _pair_ece_of_bins(bins: ReliabilityBins) -> float:
    """Return the mean gap of the bins, weighted by their counts."""
    return float(divide_or_nan(np.nansum(bins.counts * bins.gaps), bins.counts.sum()))
