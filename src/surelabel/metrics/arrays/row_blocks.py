"""Iterate over blocks of rows, so that intermediate arrays fit into the processor's cache."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

ROWS_PER_BLOCK = 512


def iterate_row_blocks(
    *arrays: npt.NDArray[Any], rows: int = ROWS_PER_BLOCK
) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """Yield consecutive blocks of rows, with the same rows of all arrays in each block.

    Args:
        arrays: Arrays of ``n`` rows each, ``(n, ...)``.
        rows: Number of rows in a block. The last block may have fewer rows.

    Example:
        >>> import numpy as np
        >>> [len(block) for block, in iterate_row_blocks(np.zeros(700))]
        [512, 188]
    """
    for start in range(0, len(arrays[0]), rows):
        yield tuple(array[start : start + rows] for array in arrays)


def transpose_in_row_blocks(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a contiguous copy of the transpose, copied in blocks of rows.

    For large arrays, the copy in blocks takes about half the time of a direct copy.

    Args:
        values: Array with ``n`` rows and ``c`` columns.

    Returns:
        Array with ``c`` rows and ``n`` columns.
    """
    transpose = np.empty(values.shape[::-1], values.dtype)
    for column_block, row_block in iterate_row_blocks(transpose.T, values):
        column_block[:] = row_block
    return transpose
