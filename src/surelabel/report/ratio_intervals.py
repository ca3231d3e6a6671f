"""Compute bootstrap intervals of ratios of sums over images, such as a pooled precision."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.metrics import ConfidenceInterval
from surelabel.metrics.resampling.bootstrap import (
    bootstrap_row_indices,
    shifted_bootstrap_interval,
)

RESAMPLES, SEED = 200, 0
TAIL = 0.025  # probability beyond each end of an interval
CACHED_IMAGES = 10_000  # the weights of this number of images take 16 MB


def ratio_of_sums_intervals(numerators: Array, denominators: Array) -> list[ConfidenceInterval]:
    """Return the ratio of the sums of each column, with its 95 % bootstrap interval over images.

    Args:
        numerators: Value of each image, ``(n, k)``, for n images and k ratios, such as the number
            of predicted labels that are positive.
        denominators: Value of each image, >= 0, ``(n, k)``, such as the number of predicted labels.

    Returns:
        Ratio and interval of each of k columns. If the sum of the denominators is 0, the ratio and
        the ends of its interval are NaN. The interval of a fraction, whose numerators are in
        [0, denominator], is in [0, 1]. All resamples of a fraction of 0 or 1 are equal, so its
        interval is that of Clopper and Pearson for the images with a denominator above 0.

    Example:
        >>> ones = np.ones((4, 1))
        >>> interval = ratio_of_sums_intervals(np.array([[1.0], [1.0], [1.0], [0.0]]), ones)[0]
        >>> interval.value, interval.low < interval.value < interval.high
        (0.75, True)
    """
    n_images = len(numerators)
    values = _ratio_of_sums(numerators, denominators, np.ones(n_images))
    resampled = np.array(
        [
            _ratio_of_sums(numerators, denominators, weights)
            for weights in _bootstrap_weights(n_images)
        ]
    ).reshape(-1, values.size)
    is_within: Flags = (numerators >= 0) & (numerators <= denominators)
    is_fraction: Flags = np.logical_and.reduce(is_within, axis=0)
    n_used = (denominators > 0).sum(axis=0)
    intervals = []
    for column, value in enumerate(values.tolist()):
        within = (0.0, 1.0) if is_fraction[column] else (-np.inf, np.inf)
        interval = shifted_bootstrap_interval(value, resampled[:, column], within=within)
        if is_fraction[column] and value in within:
            bound = TAIL ** (1 / int(n_used[column]))
            low, high = (bound, 1.0) if value == 1.0 else (0.0, 1 - bound)
            interval = replace(interval, low=low, high=high)
        intervals.append(interval)
    return intervals


def _ratio_of_sums(numerators: Array, denominators: Array, weights: Array) -> Array:
    total = weights @ denominators
    undefined = np.full(total.shape, np.nan)
    ratio: Array = np.divide(weights @ numerators, total, out=undefined, where=total > 0)
    return ratio


def _bootstrap_weights(n_images: int) -> Iterator[Array]:
    """Yield the number of times that each image is in a resample, ``(n,)``.

    A report computes many ratios of the same images, so the weights of few images are cached.
    """
    if n_images <= CACHED_IMAGES:
        yield from _cached_bootstrap_weights(n_images)
    else:
        yield from _compute_bootstrap_weights(n_images)


@lru_cache(maxsize=1)
def _cached_bootstrap_weights(n_images: int) -> tuple[Array, ...]:
    return tuple(_compute_bootstrap_weights(n_images))


def _compute_bootstrap_weights(n_images: int) -> Iterator[Array]:
    for rows in bootstrap_row_indices(n_images, RESAMPLES, SEED):
        yield np.bincount(rows, minlength=n_images).astype(np.float64)
