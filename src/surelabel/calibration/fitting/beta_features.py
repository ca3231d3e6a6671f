"""Compute the features of beta calibration."""

import numpy as np

from surelabel.arrays import Array
from surelabel.mapped_arrays import CACHED_BYTES, row_blocks


def beta_features(x: Array) -> Array:
    """Return log(p) and -log(1 - p) of p = sigmoid(x), stacked on a new last axis."""
    features = np.empty((*x.shape, 2))
    for rows in row_blocks(x, n_bytes=CACHED_BYTES):
        np.negative(np.logaddexp(0, -x[rows]), out=features[rows, ..., 0])
        np.logaddexp(0, x[rows], out=features[rows, ..., 1])
    return features
