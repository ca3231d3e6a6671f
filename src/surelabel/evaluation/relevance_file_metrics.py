"""Compute retrieval metrics with the relevant items of a file, such as ECCV Caption."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from surelabel.counts import format_count
from surelabel.data.relevant_rows import relevant_captions, relevant_images
from surelabel.errors import InputError
from surelabel.records.pairs import Pairs
from surelabel.retrieval.caption_retrieval.query_metrics import (
    query_average_precision_at_r,
    query_r_precision,
    query_recall_at_k,
)
from surelabel.retrieval.caption_retrieval.relevant_items import relevant_items_of_lists
from surelabel.retrieval.caption_retrieval.relevant_ranks import compute_relevant_ranks


@dataclass(frozen=True)
class RelevanceFileMetrics:
    """Metrics of the queries of a relevance file.

    Attributes:
        name: Name of the file.
        direction: ``image_to_caption`` or ``caption_to_image``.
        n_queries: Number of queries with a relevant item in the pairs.
        n_unmatched_queries: Number of queries of the file without a relevant item in the pairs.
        metrics: ``recall_at_1``, ``recall_at_5``, ``recall_at_10``, ``r_precision`` and
            ``map_at_r``, in [0, 1].
    """

    name: str
    direction: str
    n_queries: int
    n_unmatched_queries: int
    metrics: Mapping[str, float]

    def as_dict(self) -> dict[str, object]:
        """Return the attributes as a dictionary for JSON."""
        return asdict(self)


def evaluate_relevance_file(
    name: str,
    scores: npt.NDArray[np.float32],
    pairs: Pairs,
    relevant_ids: Mapping[int, Sequence[int]],
) -> RelevanceFileMetrics:
    """Detect the direction of a relevance file, and return the metrics of its queries.

    A pair of the file consists of the id of a query and the id of a relevant item. The queries are
    images if more pairs are valid with images as queries than with captions as queries. If both
    numbers are equal, the name of the file must contain the direction.

    Args:
        name: Name of the file.
        scores: Scores of n images and s captions, ``(n, s)``.
        pairs: Images and captions with ids, in the order of the scores.
        relevant_ids: Ids of relevant items by the id of the query.

    Raises:
        InputError: If the pairs have no ids, if no query is in the pairs, or if the ids allow both
            directions and the name of the file contains neither.

    Source:
        Chun et al., ECCV Caption, ECCV 2022, arXiv:2204.03359.
    """
    has_image_queries = _has_image_queries(name, pairs, relevant_ids)
    if has_image_queries:
        relevant, matrix = relevant_captions(pairs, relevant_ids), scores
    else:
        relevant, matrix = relevant_images(pairs, relevant_ids), scores.T
    lists: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)] * len(matrix)
    for query, rows in zip(relevant.query_rows, relevant.relevant_rows, strict=True):
        lists[query] = rows
    ranks = compute_relevant_ranks(matrix, relevant_items_of_lists(lists))
    metrics = {
        f"recall_at_{k}": float(query_recall_at_k(ranks, k=k).mean()) for k in (1, 5, 10)
    } | {
        "r_precision": float(query_r_precision(ranks).mean()),
        "map_at_r": float(query_average_precision_at_r(ranks).mean()),
    }
    return RelevanceFileMetrics(
        name,
        "image_to_caption" if has_image_queries else "caption_to_image",
        len(relevant),
        relevant.n_unmatched_queries,
        metrics,
    )


def _has_image_queries(name: str, pairs: Pairs, relevant_ids: Mapping[int, Sequence[int]]) -> bool:
    """Return whether the queries of a relevance file are images.

    Raises:
        InputError: If the ids allow both directions and the name of the file contains neither.
    """
    images, captions = set(pairs.image_ids or ()), set(pairs.caption_ids or ())
    n_to_captions, n_to_images = (
        sum(len(items.intersection(ids)) for query, ids in relevant_ids.items() if query in queries)
        for queries, items in ((images, captions), (captions, images))
    )
    if n_to_captions != n_to_images or not n_to_captions:
        return n_to_captions > n_to_images
    if ("image_to_caption" in name) == ("caption_to_image" in name):
        raise InputError(
            f"{name}: the ids must show whether the queries are images or captions; got "
            f"{format_count(n_to_images, 'matching pair')} in each direction. Add image_to_caption "
            "or caption_to_image to the name of the file."
        )
    return "image_to_caption" in name
