"""Find the steps of a function of float32 numbers, and the step of each number in a graph."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from surelabel.arrays import Array, Flags

Float32Array = npt.NDArray[np.float32]


def first_float32(predicate: Callable[[Array], Flags], shape: tuple[int, ...]) -> Float32Array:
    """Return the smallest float32 number at which each of several conditions is True.

    Comparisons with this number in float32 therefore give the same result as the condition in
    float64.

    Args:
        predicate: Function from float64 numbers of shape ``shape`` to flags of the same shape. As a
            number increases, its flag changes at most once, from False to True.
        shape: Shape of the conditions.

    Returns:
        Numbers of shape ``shape``, or infinity where a condition is False at all finite numbers.
    """
    largest = _order_of_float32(np.float32(np.finfo(np.float32).max))
    low, high = np.full(shape, -largest), np.full(shape, largest + 1)
    while (low < high).any():
        middle = (low + high) // 2
        numbers = _float32_of_order(np.minimum(middle, largest)).astype(np.float64)
        is_true = predicate(numbers) | (low == high)
        high = np.where(is_true, np.minimum(middle, high), high)
        low = np.where(is_true, low, middle + 1)
    return _float32_of_order(high)


def _order_of_float32(number: np.float32) -> int:
    """Return the rank of a positive float32 number, where 0 has the rank 0."""
    return int(number.view(np.int32))


def _float32_of_order(order: npt.NDArray[np.int64]) -> Float32Array:
    """Return the float32 numbers of ranks, where negative ranks are negative numbers."""
    magnitudes = np.abs(order).astype(np.int32).view(np.float32)
    return np.where(order < 0, -magnitudes, magnitudes)


class StepIndex(nn.Module):
    """Index of the step that contains each number, by a binary search with a fixed depth.

    The search consists of comparisons and of reading array elements, which all runtimes support.

    Args:
        edges: First numbers of the steps 1 to k, ascending, ``(k,)`` if all labels have the same
            steps, or ``(c, k)`` for the steps of each label. Edges of infinity are never reached.
    """

    edges: Tensor
    rows: Tensor

    def __init__(self, edges: Float32Array):
        super().__init__()
        self.depth = edges.shape[-1].bit_length()
        width = 2**self.depth
        padded = np.full((*edges.shape[:-1], width), np.inf, np.float32)
        padded[..., 1 : edges.shape[-1] + 1] = edges  # element 0 is never compared
        rows = np.arange(padded.size // width) * width
        self.register_buffer("edges", torch.from_numpy(padded.ravel()))
        self.register_buffer("rows", torch.from_numpy(rows))

    def forward(self, x: Tensor) -> Tensor:
        """Return how many edges of its label are at most each number, ``(n, c)``."""
        index = torch.zeros_like(x, dtype=torch.int64)
        for level in reversed(range(self.depth)):
            candidate = index + 2**level
            index = torch.where(x >= self.edges[candidate + self.rows], candidate, index)
        return index
