"""Features of beta calibration."""

import numpy as np

from surelabel.arrays import Array
from surelabel.mapped_arrays import mapped_zeros


def beta_features(x: Array) -> Array:
    """Return log(p) and -log(1 - p) of p = sigmoid(x), stacked on a new last axis."""
    features = mapped_zeros((*x.shape, 2), np.float64)
    np.negative(np.logaddexp(0, -x), out=features[..., 0])
    np.logaddexp(0, x, out=features[..., 1])
    return features
