"""Division where nothing is not zero."""

import numpy as np
import numpy.typing as npt

from surelabel.records import Array


def ratio(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> Array:
    """``numerator / denominator``, NaN where the denominator is 0."""
    top, bottom = np.asarray(numerator, float), np.asarray(denominator, float)
    nothing = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    quotient: Array = np.divide(top, bottom, out=nothing, where=bottom != 0)
    return quotient
