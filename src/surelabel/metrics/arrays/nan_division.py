"""Divide and average arrays, and return NaN without a warning if the result is undefined."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array


def divide_or_nan(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> Array:
    """Return the quotient of each pair of elements, with broadcasting, or NaN for denominator 0."""
    top, bottom = np.asarray(numerator, float), np.asarray(denominator, float)
    undefined = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    quotient: Array = np.divide(top, bottom, out=undefined, where=bottom != 0)
    return quotient


def mean_ignoring_nan(values: Array) -> float:
    """Return the mean of the values that are not NaN, or NaN if all values are NaN."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
