"""Compute the average precision of rankings in which tied scores share one threshold."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, ColumnIndices, Flags
from surelabel.metrics.arrays.nan_division import divide_or_nan

SCORES_PER_BLOCK = 1 << 19  # scores that are ranked at once, with about 80 bytes each
BUCKET_BITS = 15  # the counts of 2**15 buckets fit into the second-level cache


def tied_average_precision_of_ranking(scores: Array, is_positive: Flags) -> float:
    """Return the average precision of one ranking.

    Args:
        scores: Finite scores of m labels, ``(m,)``.
        is_positive: True for positive targets, ``(m,)``.

    Returns:
        Average precision in [0, 1]. If there is no positive, the value is NaN.
    """
    positive = np.flatnonzero(is_positive)
    if not len(positive):
        return float("nan")
    positive_scores = np.sort(scores.take(positive))
    n_of_rank = _count_ranks_in_blocks(scores, positive, positive_scores)
    n_above = n_of_rank[:0:-1].cumsum()[::-1]
    is_new = np.append(True, positive_scores[1:] > positive_scores[:-1])
    first_of_ties = np.maximum.accumulate(is_new * np.arange(len(positive)))
    return float(((len(positive) - first_of_ties) / n_above).mean())


def _count_ranks_in_blocks(
    scores: Array, positive: ColumnIndices, positive_scores: Array
) -> npt.NDArray[np.int64]:
    """Return the counts of ``_count_scores_of_each_rank``, computed in blocks of scores.

    All positives are added to each block, and their counts are then subtracted.
    """
    if len(scores) <= SCORES_PER_BLOCK:
        return _count_scores_of_each_rank(scores, positive, positive_scores)
    first = np.arange(len(positive))
    n_of_rank = np.zeros(len(positive) + 1, np.int64)
    n_of_positives = _count_scores_of_each_rank(positive_scores, first, positive_scores)
    for start in range(0, len(scores), SCORES_PER_BLOCK):
        block = np.concatenate([positive_scores, scores[start : start + SCORES_PER_BLOCK]])
        n_of_rank += _count_scores_of_each_rank(block, first, positive_scores) - n_of_positives
    return n_of_rank


def tied_average_precision_of_rows(scores: Array, is_positive: Flags, known: Flags) -> Array:
    """Return the average precision of each row.

    Each positive is compared with all labels of its row. If rows are short and have few positives,
    this comparison is faster than sorting each row.

    Args:
        scores: Finite scores of n images and c classes, ``(n, c)``.
        is_positive: True for known positive targets, ``(n, c)``.
        known: True where the target is known, ``(n, c)``.

    Returns:
        Average precision of each row in [0, 1], ``(n,)``. The value of a row without a positive is
        NaN.
    """
    positive = np.flatnonzero(is_positive)
    row = positive // scores.shape[1]
    above = scores.take(row, axis=0) >= scores.take(positive)[:, None]
    if not known.all():
        above &= known.take(row, axis=0)
    above_as_float = above.astype(np.float32)  # sums are exact up to 2**24 labels
    positive_as_float = is_positive.astype(np.float32).take(row, axis=0)
    n_above = (above_as_float @ np.ones(scores.shape[1], np.float32)).astype(np.float64)
    n_positives_above = np.einsum("mc,mc->m", above_as_float, positive_as_float)
    precision_sums = np.bincount(row, n_positives_above / n_above, len(scores))
    return divide_or_nan(precision_sums, np.bincount(row, minlength=len(scores)))


def _count_scores_of_each_rank(
    scores: Array, positive: ColumnIndices, positive_scores: Array
) -> npt.NDArray[np.int64]:
    """Count the scores of each rank, which is the number of positives with a score at most as high.

    Sorting all scores would take most of the computing time. Instead, all scores are assigned to
    buckets by their highest bits. If the bucket of a score contains no positive, the rank is the
    number of positives in lower buckets. Only the scores in buckets with positives are compared
    with the positives.

    Args:
        scores: Scores of all labels, ``(m,)``.
        positive: Indices of the positive labels.
        positive_scores: Scores of the positive labels, ascending.

    Returns:
        Number of scores of each rank, from 0 to the number of positives.
    """
    bucket = _buckets_for_tied_average_precision(scores)
    n_positives = np.bincount(bucket.take(positive), minlength=int(bucket.max()) + 1)
    highest_rank = n_positives.cumsum()
    code = (2 * (highest_rank - n_positives) + (n_positives > 0)).take(bucket)
    close = np.flatnonzero((code & 1).astype(bool))
    rank = code.take(close) >> 1
    highest_rank = highest_rank.take(bucket.take(close))
    close_scores = scores.take(close)
    step = 1 << (int(n_positives.max()).bit_length() - 1)
    while step:  # binary search among the positives of the bucket
        next_rank = np.minimum(rank + step, highest_rank)
        rank = np.where(positive_scores.take(next_rank - 1) <= close_scores, next_rank, rank)
        step >>= 1
    n_ranks = len(positive) + 1
    return np.bincount(code, minlength=2 * n_ranks)[::2] + np.bincount(rank, minlength=n_ranks)


def _buckets_for_tied_average_precision(scores: Array) -> ColumnIndices:
    """Return the bucket of each score, counted from 0 and non-decreasing with the score.

    After the bits of negative floats are inverted, the bits of a float form an integer that
    increases with the float.
    """
    with np.errstate(over="ignore"):  # scores that overflow float32 share the bucket of infinity
        bits = scores.astype(np.float32).view(np.int32)
    if bits.min() < 0:
        bits = (bits.view(np.float32) + np.float32(0)).view(np.int32)  # turns -0 into 0
        bits ^= (bits >> 31) & 0x7FFFFFFF
    lowest, highest = int(bits.min()), int(bits.max())
    n_bits = min(BUCKET_BITS, len(scores).bit_length() + 2)  # few scores need few buckets
    shift = max(0, (highest - lowest).bit_length() - n_bits)
    bits >>= shift
    bits -= lowest >> shift
    return bits.astype(np.intp)
