"""Metrics of retrieval with the relevant items of a published file, such as ECCV Caption."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from surelabel.data.relevant_rows import relevant_captions, relevant_images
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
        n_unmatched_queries: Number of queries of the file that are not used.
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
    """Return the metrics of the queries of a relevance file, whose direction is detected.

    If more queries of the file are image ids than caption ids, the queries are images.

    Args:
        name: Name of the file.
        scores: Scores of n images and s captions, ``(n, s)``.
        pairs: Images and captions with ids, in the order of the scores.
        relevant_ids: Ids of relevant items by the id of the query.

    Raises:
        InputError: If the pairs have no ids, or no query is in the pairs.

    Source:
        Chun et al., ECCV Caption, ECCV 2022, arXiv:2204.03359.
    """
    n_images, n_captions = (
        len(relevant_ids.keys() & set(ids or ())) for ids in (pairs.image_ids, pairs.caption_ids)
    )
    has_image_queries = n_images > n_captions
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
