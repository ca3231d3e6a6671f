"""Compute p-values of differences from resamples, and adjust p-values for several tests."""

import numpy as np
from scipy.special import ndtr

from surelabel.arrays import Array


def bootstrap_p_values(difference: Array, resampled: Array) -> Array:
    """Return two-sided p-values of differences, from their standard deviations over resamples.

    Args:
        difference: Differences on the original images, ``(c,)``.
        resampled: Differences on each of r resamples, NaN if undefined, ``(r, c)``.

    Returns:
        p-values, ``(c,)``. If all resamples have one value, the p-value is 1 for a difference of 0,
        and NaN for another difference. If a difference is NaN, or defined on fewer than two
        resamples, the p-value is NaN.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap, 1993: the normal interval.

    Example:
        >>> bootstrap_p_values(np.array([0.0]), np.array([[0.0], [0.0]])).tolist()
        [1.0]
    """
    n_defined = (~np.isnan(resampled)).sum(axis=0)
    centred = resampled - np.nansum(resampled, axis=0) / np.maximum(n_defined, 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # fewer than two defined resamples
        deviation = np.sqrt(np.nansum(centred**2, axis=0) / (n_defined - 1))
        p_values = 2 * ndtr(-np.abs(difference) / deviation)
    is_undetermined = (deviation == 0) & (difference != 0)
    p_values = np.where((deviation == 0) & (difference == 0), 1.0, p_values)
    result: Array = np.where(is_undetermined, np.nan, p_values)
    return result


def adjusted_p_values(p_values: Array) -> Array:
    """Return p-values that are adjusted by the method of Benjamini and Hochberg, ``(c,)``.

    Args:
        p_values: p-values of c labels, NaN if a label is not tested, ``(c,)``. The adjusted p-value
            of such a label is NaN.

    Example:
        >>> adjusted_p_values(np.array([0.01, np.nan, 0.5])).tolist()
        [0.02, nan, 0.5]
    """
    from scipy.stats import false_discovery_control  # slow to import

    adjusted = np.full(len(p_values), np.nan)
    is_tested = ~np.isnan(p_values)
    if is_tested.any():
        adjusted[is_tested] = false_discovery_control(p_values[is_tested], method="bh")
    return adjusted
