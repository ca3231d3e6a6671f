"""A few pictures at a time, so that what they need stays in the processor's cache."""

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

ROWS = 512


def blocks(*arrays: npt.NDArray[Any], rows: int = ROWS) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """The same rows of all arrays, from the first to the last.

    Args:
        arrays: ``(n, ...)`` each.
        rows: How many at a time; the last block may have fewer.

    Example:
        >>> import numpy as np
        >>> [len(block) for block, in blocks(np.zeros(700))]
        [512, 188]
    """
    for start in range(0, len(arrays[0]), rows):
        yield tuple(array[start : start + rows] for array in arrays)
