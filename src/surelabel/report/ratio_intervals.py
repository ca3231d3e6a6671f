"""Bootstrap confidence intervals of ratios of sums over images, such as a pooled precision."""

from collections.abc import Iterator

import numpy as np

from surelabel.arrays import Array
from surelabel.metrics import ConfidenceInterval
from surelabel.metrics.resampling.bootstrap import (
    bootstrap_row_indices,
    shifted_bootstrap_interval,
)

RESAMPLES, SEED = 200, 0


def ratio_of_sums_intervals(numerators: Array, denominators: Array) -> list[ConfidenceInterval]:
    """Return the ratio of the sums of each column, with its 95 % bootstrap interval over images.

    Args:
        numerators: Value of each image, ``(n, k)``, for n images and k ratios; for example the
            number of predicted labels that are positive.
        denominators: Value of each image, >= 0, ``(n, k)``; for example the number of predicted
            labels.

    Returns:
        Ratio and interval of each of k columns. If the sum of the denominators is 0, the ratio and
        the ends of its interval are NaN.

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
    return [
        shifted_bootstrap_interval(float(value), resampled[:, column])
        for column, value in enumerate(values)
    ]


def _ratio_of_sums(numerators: Array, denominators: Array, weights: Array) -> Array:
    total = weights @ denominators
    undefined = np.full(total.shape, np.nan)
    ratio: Array = np.divide(weights @ numerators, total, out=undefined, where=total > 0)
    return ratio


def _bootstrap_weights(n_images: int) -> Iterator[Array]:
    """Yield the number of times that each image is in a resample, ``(n,)``."""
    for rows in bootstrap_row_indices(n_images, RESAMPLES, SEED):
        yield np.bincount(rows, minlength=n_images).astype(np.float64)
