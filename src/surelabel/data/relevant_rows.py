"""Find the rows of the relevant images and captions of queries by the ids of a dataset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.errors import InputError
from surelabel.records import ItemId, Pairs, RowIndices


@dataclass(frozen=True)
class RelevantRows:
    """Rows of the relevant items of each query that is in the pairs.

    Attributes:
        query_rows: Row of each query in the pairs, in ascending order, ``(q,)``.
        relevant_rows: Rows of the relevant items of each query in the pairs, length q, each with at
            least one row.
        n_unmatched_queries: Number of queries of the file that are not in the pairs, or have no
            relevant item in the pairs.
        n_unmatched_items: Number of relevant items of the q queries that are not in the pairs.
    """

    query_rows: RowIndices
    relevant_rows: Sequence[RowIndices]
    n_unmatched_queries: int
    n_unmatched_items: int

    def __len__(self) -> int:
        return len(self.relevant_rows)


def relevant_captions(pairs: Pairs, caption_ids: Mapping[int, Sequence[int]]) -> RelevantRows:
    """Return the rows of the relevant captions of images.

    Args:
        pairs: Images and captions with ids.
        caption_ids: Ids of the relevant captions by image id, from
            :func:`surelabel.data.read_relevance`.

    Raises:
        InputError: If the pairs have no ids, if no query and one of its relevant items are in the
            pairs, or if more ids match with images and captions exchanged.

    Example:
        >>> pairs = Pairs(["a.jpg"], ["a dog", "a puppy"], [0, 0], [7], [30, 31])
        >>> relevant = relevant_captions(pairs, {7: [31, 99], 8: [30]})
        >>> relevant.query_rows.tolist(), [rows.tolist() for rows in relevant.relevant_rows]
        ([0], [[1]])
        >>> relevant.n_unmatched_queries, relevant.n_unmatched_items
        (1, 1)
    """
    return _match_ids(pairs.image_ids, pairs.caption_ids, caption_ids, ("image", "caption"))


def relevant_images(pairs: Pairs, image_ids: Mapping[int, Sequence[int]]) -> RelevantRows:
    """Return the rows of the relevant images of captions.

    Args:
        pairs: Images and captions with ids.
        image_ids: Ids of the relevant images by caption id, from
            :func:`surelabel.data.read_relevance`.

    Raises:
        InputError: If the pairs have no ids, if no query and one of its relevant items are in the
            pairs, or if more ids match with images and captions exchanged.
    """
    return _match_ids(pairs.caption_ids, pairs.image_ids, image_ids, ("caption", "image"))


def _match_ids(
    query_ids: Sequence[ItemId] | None,
    item_ids: Sequence[ItemId] | None,
    relevance: Mapping[int, Sequence[int]],
    kinds: tuple[str, str],
) -> RelevantRows:
    if query_ids is None or item_ids is None:
        raise InputError(
            "Relevance requires the image ids and caption ids of the pairs; got pairs without "
            "these ids. Read COCO captions, or JSON lines with image_id and caption_id."
        )
    query_row_of = {id_: row for row, id_ in enumerate(query_ids)}
    item_row_of = {id_: row for row, id_ in enumerate(item_ids)}
    rows_of_query: dict[int, RowIndices] = {}
    n_unmatched_items = 0
    for query, items in relevance.items():
        rows = [item_row_of[item] for item in items if item in item_row_of]
        if query in query_row_of and rows:
            rows_of_query[query_row_of[query]] = np.array(rows)
            n_unmatched_items += len(items) - len(rows)
    n_matches = sum(map(len, rows_of_query.values()))
    n_reversed_matches = sum(
        item in query_row_of
        for query, items in relevance.items()
        if query in item_row_of
        for item in items
    )
    if not n_matches or n_reversed_matches > n_matches:  # ids of images and captions can be equal
        query_kind, item_kind = kinds
        raise InputError(
            f"The relevance must map {query_kind} ids to {item_kind} ids; {len(rows_of_query)} of "
            f"{len(relevance)} queries match the pairs. Give the file of the same dataset and the "
            "same retrieval direction."
        )
    query_rows = np.array(sorted(rows_of_query))
    return RelevantRows(
        query_rows,
        [rows_of_query[row] for row in query_rows.tolist()],
        len(relevance) - len(rows_of_query),
        n_unmatched_items,
    )
