"""Apply torch functions to numpy arrays."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from surelabel.links.interface import ArrayOrTensor


def apply_with_numpy_conversion(
    formula: Callable[[Tensor], Tensor], values: ArrayOrTensor
) -> ArrayOrTensor:
    """Apply an elementwise torch function to a tensor or a numpy array, in float32 or float64.

    Args:
        formula: Elementwise function from a tensor to a tensor of the same shape.
        values: Tensor or array. Values of type float16, bfloat16 or integer are cast to float32.

    Returns:
        Output of the function, a tensor if ``values`` is a tensor, else a new numpy array.
    """
    if isinstance(values, Tensor):
        return formula(values.to(torch.promote_types(values.dtype, torch.float32)))
    return apply_with_numpy_conversion(formula, torch.from_numpy(np.array(values))).numpy()
