"""Compute logarithms of probabilities with operators that are exact in every runtime.

The sigmoid of some runtimes has a large relative error for very negative inputs. Therefore the
logarithm of a sigmoid is computed without the sigmoid.
"""

import numpy as np
import numpy.typing as npt
from torch import Tensor

from surelabel.arrays import Array

MIN_LOGARITHM = -690.0  # of a weight of 0; its exponential is 0 in float32


def softplus_of_minus_magnitude(x: Tensor) -> Tensor:
    """Return log(1 + exp(-|x|)), in [0, log 2]."""
    return (1 + (-x.abs()).exp()).log()


def log_sigmoid(x: Tensor) -> Tensor:
    """Return the logarithm of the sigmoid of ``x``."""
    return x.clamp(max=0) - softplus_of_minus_magnitude(x)


def log_add_exp(a: Tensor, b: Tensor) -> Tensor:
    """Return log(exp(a) + exp(b)) of tensors of finite numbers that can be broadcast."""
    difference = a - b
    return b + difference.clamp(min=0) + softplus_of_minus_magnitude(difference)


def log_weights(weights: npt.ArrayLike) -> Array:
    """Return the logarithms of weights >= 0, or -690 for a weight of 0."""
    values = np.asarray(weights, dtype=np.float64)
    logarithms: Array = np.log(np.maximum(values, np.exp(MIN_LOGARITHM)))
    return logarithms
