"""The formulas of links are written in torch; arrays go there and back."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from surelabel.links.protocol import Values


def in_torch(formula: Callable[[Tensor], Tensor], values: Values) -> Values:
    """Apply a torch formula to a tensor or an array, in float32 at least.

    Returns:
        The same kind; float32, or float64 if ``values`` were.
    """
    if isinstance(values, Tensor):
        return formula(values.to(torch.promote_types(values.dtype, torch.float32)))
    return in_torch(formula, torch.from_numpy(np.array(values))).numpy()
