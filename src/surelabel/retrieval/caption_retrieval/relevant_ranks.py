"""Compute the ranks of the relevant items in the ranked list of each query."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, ColumnIndices, Flags
from surelabel.errors import InputError
from surelabel.retrieval.caption_retrieval.relevant_items import NOT_RANKED, RelevantItems
from surelabel.retrieval.caption_retrieval.score_blocks import iterate_score_blocks
from surelabel.shapes import check_shapes

MIN_SORTED_ITEMS, SCORES_PER_SORTED_ITEM = 4, 256  # a sort takes as long as this many comparisons


@dataclass(frozen=True)
class RelevantRanks:
    """Ranks of the relevant items of each query with at least one relevant item.

    The relevant items of the query at position ``i`` are the entries ``offsets[i]`` to
    ``offsets[i + 1]`` of ``ranks``, ``grades`` and ``is_own``. The order of the entries has no
    meaning.

    Attributes:
        queries: Row of each query with at least one relevant item, increasing, ``(q,)``.
        offsets: Position of the first entry of each query, increasing from 0 to k, ``(q + 1,)``.
        ranks: Rank of each relevant item in the ranked list of its query, from 1, ``(k,)``.
        grades: Relevance of each item in (0, 1], ``(k,)``.
        is_own: True if the item was annotated for the query itself, ``(k,)``.
        n_left_out: Number of queries without a relevant item, which are left out.
    """

    queries: ColumnIndices
    offsets: ColumnIndices
    ranks: npt.NDArray[np.int64]
    grades: Array
    is_own: Flags
    n_left_out: int

    @property
    def positions(self) -> ColumnIndices:
        """Return the position of the query of each entry, from 0 to q - 1, ``(k,)``."""
        return np.repeat(np.arange(len(self.queries)), self.relevant_counts)

    @property
    def relevant_counts(self) -> ColumnIndices:
        """Return the number of relevant items of each query, ``(q,)``."""
        return np.diff(self.offsets)

    def own(self) -> "RelevantRanks":
        """Return the ranks of the items that were annotated for the query itself.

        Queries without such an item are left out and counted.
        """
        return self._entries(self.is_own)

    def at_least(self, threshold: float) -> "RelevantRanks":
        """Return the ranks of the own items, and of all items with a grade of at least a threshold.

        Args:
            threshold: Lowest grade of a relevant item, in (0, 1].

        Raises:
            InputError: If ``threshold`` is not in (0, 1].
        """
        if not 0 < threshold <= 1:
            raise InputError(
                f"The grade threshold must be in (0, 1]; got {threshold}. Use 1 to count only "
                "items with the highest grade."
            )
        return self._entries(self.is_own | (self.grades >= threshold))

    def of_queries(self, queries: ColumnIndices) -> "RelevantRanks":
        """Return the ranks of the given queries; other queries are left out and counted.

        Args:
            queries: Rows of the queries, a subset of ``self.queries``.
        """
        return self._entries(np.isin(self.queries, queries)[self.positions])

    def _entries(self, is_selected: Flags) -> "RelevantRanks":
        """Return the selected entries; a query without a selected entry is left out."""
        counts = np.bincount(self.positions[is_selected], minlength=len(self.queries))
        has_items = counts > 0
        return RelevantRanks(
            self.queries[has_items],
            np.concatenate([[0], np.cumsum(counts[has_items])]).astype(np.intp),
            self.ranks[is_selected],
            self.grades[is_selected],
            self.is_own[is_selected],
            self.n_left_out + int((~has_items).sum()),
        )


def compute_relevant_ranks(
    scores: npt.NDArray[np.floating[Any]], relevant: RelevantItems
) -> RelevantRanks:
    """Rank all items for each query and return the ranks of the relevant items.

        rank = 1 + number of items with a higher score
                 + number of items with an equal score and a lower column

    A relevant item that is not in the collection has the rank m + 1, below all items. Items with
    equal scores are ranked by column, as a stable sort of descending scores does. The
    scores are read in blocks of rows, so a transposed matrix is not copied as a whole.

    Args:
        scores: Finite scores of q queries and m items, ``(q, m)``, higher for better matches. For
            the other direction of retrieval, pass the transposed matrix.
        relevant: Relevant items of the q queries.

    Returns:
        Ranks of the relevant items. Queries without a relevant item are left out and counted.

    Raises:
        InputError: If the numbers of queries differ, if a relevant item is not a column of
            ``scores``, or if a score is not finite.

    Example:
        >>> from surelabel.retrieval.caption_retrieval.relevant_items import relevant_items_of_lists
        >>> scores = np.array([[0.1, 0.9, 0.5], [0.3, 0.3, 0.3], [0.0, 0.0, 0.0]])
        >>> compute_relevant_ranks(scores, relevant_items_of_lists([[2, 0], [1], []])).ranks
        array([2, 3, 2])
    """
    check_shapes(scores=(scores, "q m"))
    _check_relevant_ranks_inputs(scores, relevant)
    ranks = np.empty(len(relevant.items), np.int64)
    for start, block in iterate_score_blocks(scores):
        for row, row_scores in enumerate(block, start):
            entries = slice(relevant.offsets[row], relevant.offsets[row + 1])
            ranks[entries] = _ranks_in_row(row_scores, relevant.items[entries])
    counts = np.diff(relevant.offsets)
    queries = np.flatnonzero(counts)
    offsets = np.concatenate([[0], np.cumsum(counts[queries])]).astype(np.intp)
    n_left_out = len(relevant) - len(queries)
    return RelevantRanks(queries, offsets, ranks, relevant.grades, relevant.is_own, n_left_out)


def _ranks_in_row(
    scores: npt.NDArray[np.floating[Any]], items: ColumnIndices
) -> npt.NDArray[np.int64]:
    """Return the ranks of the relevant items of one query, from 1.

    A few items are compared with all scores. Many items are searched in the sorted scores.
    """
    if len(items) <= MIN_SORTED_ITEMS + len(scores) // SCORES_PER_SORTED_ITEM:
        return np.array([_rank_of_relevant_item(scores, item) for item in items], np.int64)
    is_ranked = items != NOT_RANKED
    values, ascending = scores[items], np.sort(scores)
    n_not_above = np.searchsorted(ascending, values, side="right")
    is_tied = n_not_above - np.searchsorted(ascending, values, side="left") > 1
    ranks: npt.NDArray[np.int64] = 1 + len(scores) - n_not_above
    for entry in np.flatnonzero(is_tied | ~is_ranked):
        ranks[entry] = _rank_of_relevant_item(scores, items[entry])
    return ranks


def _rank_of_relevant_item(scores: npt.NDArray[np.floating[Any]], item: int) -> int:
    """Return the rank of one item, from 1."""
    if item == NOT_RANKED:
        return len(scores) + 1
    score = scores[item]
    n_before = np.count_nonzero(scores[:item] >= score)
    n_after = np.count_nonzero(scores[item + 1 :] > score)
    return int(n_before + n_after) + 1


def _check_relevant_ranks_inputs(
    scores: npt.NDArray[np.floating[Any]], relevant: RelevantItems
) -> None:
    if len(relevant) != len(scores):
        raise InputError(
            f"relevant must have one entry per row of scores, {len(scores)}; got {len(relevant)}. "
            "Transpose the scores if the columns are the queries."
        )
    if relevant.items.size and relevant.items.max() >= scores.shape[1]:
        raise InputError(
            f"Relevant items must be columns of the scores, from 0 to {scores.shape[1] - 1}; got "
            f"{relevant.items.max()}. Check that the scores and the relevant items belong to the "
            "same collection."
        )
