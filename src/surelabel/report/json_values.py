"""Convert results to values of strict JSON, which has neither NaN nor infinity."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def strict_json_value(value: Any) -> Any:
    """Convert arrays and tuples to lists, keys to strings, and non-finite numbers to None.

    Example:
        >>> strict_json_value({"ece": np.array([0.5, np.nan]), 3: (1, True)})
        {'ece': [0.5, None], '3': [1, True]}
    """
    if isinstance(value, Mapping):
        return {str(key): strict_json_value(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return strict_json_value(value.tolist())
    if isinstance(value, list | tuple):
        return [strict_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
