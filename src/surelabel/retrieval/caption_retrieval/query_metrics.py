"""Compute ranking metrics of each query from the ranks of its relevant items.

A query is an image or a caption; its items are the captions or the images of the collection. Every
function returns one value per query of ``RelevantRanks.queries``, without a mean.
"""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.errors import InputError
from surelabel.retrieval.caption_retrieval.relevant_ranks import RelevantRanks


def first_relevant_rank(ranks: RelevantRanks) -> npt.NDArray[np.int64]:
    """Return the rank of the highest-ranked relevant item of each query, from 1, ``(q,)``.

    The median over queries is the median rank. The code of VSE++ and of PCME++ rounds this median
    down to a whole number.
    """
    if not len(ranks.queries):
        return np.zeros(0, np.int64)
    return np.minimum.reduceat(ranks.ranks, ranks.offsets[:-1])


def query_recall_at_k(ranks: RelevantRanks, *, k: int) -> Array:
    """Return 1 if a relevant item is among the first k items, otherwise 0, ``(q,)``.

    The mean over queries is R@k of retrieval between images and captions. In other fields, this
    mean is called hit rate, because it does not depend on the number of relevant items found.

    Args:
        ranks: Ranks of the relevant items.
        k: Number of items at the top of the ranked list, >= 1.

    Raises:
        InputError: If ``k`` is below 1.

    Source:
        Karpathy and Fei-Fei, Deep Visual-Semantic Alignments, CVPR 2015.
    """
    if k < 1:
        raise InputError(f"k, the number of items, must be at least 1; got {k}. Increase k.")
    return (first_relevant_rank(ranks) <= k).astype(np.float64)


def query_r_precision(ranks: RelevantRanks) -> Array:
    """Return the R-precision: the fraction of relevant items among the first R items, ``(q,)``.

    R is the number of relevant items of the query.

    Source:
        Musgrave et al., A Metric Learning Reality Check, ECCV 2020; for captions: Chun et al., ECCV
        Caption, ECCV 2022.
    """
    n_relevant = ranks.relevant_counts
    is_hit = ranks.ranks <= np.repeat(n_relevant, n_relevant)
    return np.bincount(ranks.positions, is_hit, len(n_relevant)) / n_relevant


def query_average_precision_at_r(ranks: RelevantRanks) -> Array:
    """Return the average precision at R of each query, in [0, 1], ``(q,)``.

        (1 / R) · sum over r = 1, …, R of P(r) · [the item at rank r is relevant]

    R is the number of relevant items of the query, and P(r) is the fraction of relevant items among
    the first r items. The mean over queries is mAP@R.

    Source:
        Musgrave et al., A Metric Learning Reality Check, ECCV 2020; for captions: Chun et al., ECCV
        Caption, ECCV 2022.
    """
    n_relevant, positions = ranks.relevant_counts, ranks.positions
    sorted_ranks = ranks.ranks[np.lexsort((ranks.ranks, positions))]
    n_hits = np.arange(1, len(sorted_ranks) + 1) - np.repeat(ranks.offsets[:-1], n_relevant)
    is_hit = sorted_ranks <= np.repeat(n_relevant, n_relevant)
    return np.bincount(positions, is_hit * n_hits / sorted_ranks, len(n_relevant)) / n_relevant


def query_ndcg(ranks: RelevantRanks) -> Array:
    """Return the normalized discounted cumulative gain of each query, in (0, 1], ``(q,)``.

        (sum over relevant items of grade / log2(1 + rank)) / (this sum for a perfect ranking)

    The whole list is ranked, and the gain of an item is its grade.

    Source:
        Järvelin and Kekäläinen, Cumulated Gain-based Evaluation of IR Techniques, ACM TOIS 2002.
    """
    n_relevant, positions = ranks.relevant_counts, ranks.positions
    gains = np.bincount(positions, ranks.grades / np.log2(1 + ranks.ranks), len(n_relevant))
    best_grades = ranks.grades[np.lexsort((-ranks.grades, positions))]
    best_ranks = np.arange(1, len(best_grades) + 1) - np.repeat(ranks.offsets[:-1], n_relevant)
    return gains / np.bincount(positions, best_grades / np.log2(1 + best_ranks), len(n_relevant))


def chance_recall_at_k(ranks: RelevantRanks, n_items: int, *, k: int) -> Array:
    """Return the expected recall at k of a random ranking, in [0, 1], ``(q,)``.

        1 - (1 - R / m) · (1 - R / (m - 1)) · … · (1 - R / (m - k + 1))

    Args:
        ranks: Ranks of the relevant items; only the number R of each query is used.
        n_items: Number of items m, at least the number of relevant items of each query.
        k: Number of items at the top of the ranked list, >= 1.
    """
    n_remaining = n_items - np.arange(min(k, n_items))
    n_irrelevant = np.maximum(n_remaining - ranks.relevant_counts[:, None], 0)
    recall: Array = 1 - np.prod(n_irrelevant / n_remaining, axis=1)
    return recall
