"""Features of beta calibration."""

import numpy as np

from surelabel.arrays import Array


def beta_features(x: Array) -> Array:
    """Return log(p) and -log(1 - p) of p = sigmoid(x), stacked on a new last axis."""
    return np.stack([-np.logaddexp(0, -x), np.logaddexp(0, x)], axis=-1)
