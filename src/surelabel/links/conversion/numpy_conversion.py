"""Apply torch formulas to numpy arrays."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from surelabel.links.interface import ArrayOrTensor


def apply_in_torch(formula: Callable[[Tensor], Tensor], values: ArrayOrTensor) -> ArrayOrTensor:
    """Apply a torch formula to a tensor or a numpy array, in float32 or float64.

    Args:
        formula: Function from a tensor to a tensor.
        values: Tensor or array; float16, bfloat16 and integers are cast to float32.

    Returns:
        A tensor for a tensor, an array for an array; float64 if ``values`` is, else float32.
    """
    if isinstance(values, Tensor):
        return formula(values.to(torch.promote_types(values.dtype, torch.float32)))
    return apply_in_torch(formula, torch.from_numpy(np.array(values))).numpy()
