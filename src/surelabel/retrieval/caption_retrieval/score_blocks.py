"""Iterate over blocks of rows of a score matrix, without a copy of the whole matrix."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError

ROWS_PER_BLOCK = 256  # a block with 25,000 float32 columns takes 26 MB
COLUMNS_PER_TILE = 64  # columns of a transposed matrix; a tile fits into the L1 cache


def iterate_score_blocks(
    scores: npt.NDArray[np.floating[Any]],
) -> Iterator[tuple[int, npt.NDArray[np.floating[Any]]]]:
    """Yield the number of the first row and the scores of each block of consecutive rows.

    A block of a transposed matrix is copied in tiles, which is about five times faster than copying
    row by row.

    Args:
        scores: Finite scores of q queries and m items, ``(q, m)``, or the transpose of a matrix.

    Raises:
        InputError: If a score is not finite.
    """
    for start in range(0, len(scores), ROWS_PER_BLOCK):
        block = scores[start : start + ROWS_PER_BLOCK]
        if not block.flags.c_contiguous:
            rows_of_columns = block
            block = np.empty(block.shape, block.dtype)
            for column in range(0, block.shape[1], COLUMNS_PER_TILE):
                tile = slice(column, column + COLUMNS_PER_TILE)
                block[:, tile] = rows_of_columns[:, tile]
        if not np.isfinite(block).all():
            raise InputError(
                "scores must be finite; got NaN or infinite values in rows "
                f"{start} to {start + len(block) - 1}. Check the features of these queries."
            )
        yield start, block
