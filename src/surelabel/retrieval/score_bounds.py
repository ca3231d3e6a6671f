"""Compute bounds of the log probability of a literal from the high 16 bits of its sort keys.

The high bits of a key determine its log-odds within 1/128 of their absolute value. A table of
65,536 numbers maps them to a bound of the log probability. Reading a bound takes a tenth of the
time of computing the log probability.
"""

from functools import lru_cache

import numpy as np

from surelabel.retrieval.formula_probability import LogProbability, log_sigmoid
from surelabel.retrieval.sort_keys import KeyPlane, floats_of_sort_keys, join_key_planes


def bounds_of_high_plane(high: KeyPlane, sign: int, *, is_upper: bool) -> LogProbability:
    """Return bounds of the log probability of a literal from the high 16 bits of its sort keys.

    Args:
        high: High 16 bits of the sort keys of log-odds, ``(n,)``.
        sign: 1 if the label is wanted, -1 if it is unwanted.
        is_upper: If True, upper bounds are returned; otherwise, lower bounds.

    Example:
        >>> high = np.array([0xBF80], np.uint16)  # log-odds from 1 to 1.0078
        >>> bounds_of_high_plane(high, 1, is_upper=False).round(4)
        array([-0.3133])
        >>> bounds_of_high_plane(high, 1, is_upper=True).round(4)
        array([-0.3112])
    """
    return _table_of_score_bounds(sign, is_upper).take(high)


@lru_cache(maxsize=4)
def _table_of_score_bounds(sign: int, is_upper: bool) -> LogProbability:
    """Return the bound for each value of the high plane, ``(65536,)``."""
    high = np.arange(1 << 16, dtype=np.uint16)
    is_largest = is_upper == (sign > 0)  # of the keys with these high bits
    low = np.full_like(high, 0xFFFF if is_largest else 0)
    logits = floats_of_sort_keys(join_key_planes(high, low))
    is_finite = np.isfinite(logits)  # an index has no keys of infinity and NaN
    return log_sigmoid(sign * np.where(is_finite, logits, 40.0 if is_largest else -40.0))
