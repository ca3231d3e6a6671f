"""Select the highest-ranked items of each query, without a sort of the whole list."""

from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.arrays import ColumnIndices
from surelabel.errors import InputError
from surelabel.retrieval.caption_retrieval.score_blocks import iterate_score_blocks
from surelabel.shapes import check_shapes


def top_items_of_queries(scores: npt.NDArray[np.floating[Any]], *, k: int) -> ColumnIndices:
    """Return the k items with the highest scores of each query, best first.

    Items with equal scores are ordered by column, as in ``compute_relevant_ranks``. The scores are
    read in blocks of rows, and each block is partitioned at rank k, not sorted.

    Args:
        scores: Finite scores of q queries and m items, ``(q, m)``, higher for better matches.
        k: Number of items of each query, from 1 to m.

    Returns:
        Columns of the items, ``(q, k)``.

    Raises:
        InputError: If ``k`` is not between 1 and m, or if a score is not finite.

    Example:
        >>> top_items_of_queries(np.array([[0.2, 0.7, 0.2], [0.1, 0.1, 0.4]]), k=2)
        array([[1, 0],
               [2, 0]])
    """
    check_shapes(scores=(scores, "q m"))
    n_items = scores.shape[1]
    if not 1 <= k <= n_items:
        raise InputError(
            f"k must be between 1 and the number of items, {n_items}; got {k}. Choose k in this "
            "range."
        )
    top_items = np.empty((len(scores), k), np.intp)
    for start, block in iterate_score_blocks(scores):
        limits = np.partition(block, n_items - k, axis=1)[:, n_items - k]
        for row, (row_scores, limit) in enumerate(zip(block, limits, strict=True), start):
            candidates = np.flatnonzero(row_scores >= limit)  # more than k if scores are equal
            order = np.argsort(-row_scores[candidates], kind="stable")
            top_items[row] = candidates[order[:k]]
    return top_items
