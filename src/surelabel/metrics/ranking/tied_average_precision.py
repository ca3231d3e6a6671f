"""Average precision of one or many rankings, where tied scores share one threshold."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.metrics.arrays.nan_division import divide_or_nan

BUCKET_BITS = 16  # the counts of 2**16 buckets fit into the second-level cache


def tied_average_precision_of_ranking(scores: Array, is_positive: Flags) -> float:
    """Return the average precision of one ranking.

    Args:
        scores: Finite scores of m labels, ``(m,)``.
        is_positive: True for positive targets, ``(m,)``.

    Returns:
        Average precision in [0, 1]. If there is no positive, the value is NaN.
    """
    if not is_positive.any():
        return float("nan")
    positive_scores = np.sort(scores[is_positive])
    n_positives_above = len(positive_scores) - np.searchsorted(
        positive_scores, positive_scores, side="left"
    )
    n_above = _count_tied_or_higher_scores(scores, is_positive, positive_scores)
    return float((n_positives_above / n_above).mean())


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
    row, column = np.nonzero(is_positive)
    above = scores[row] >= scores[row, column][:, None]
    n_positives_above = np.count_nonzero(above & is_positive[row], axis=1)
    n_above = np.count_nonzero(above if known.all() else above & known[row], axis=1)
    precision_sums = np.bincount(row, n_positives_above / n_above, len(scores))
    return divide_or_nan(precision_sums, is_positive.sum(axis=1))


def _count_tied_or_higher_scores(
    scores: Array, is_positive: Flags, positive_scores: Array
) -> npt.NDArray[np.int64]:
    """Count, for each of the sorted positive scores, the scores that are at least as high.

    Sorting all scores would take most of the computing time. Instead, all scores are assigned to
    buckets by approximate size. Only scores that share a bucket with a positive are sorted; all
    other scores are only counted.
    """
    bucket = _buckets_for_tied_average_precision(scores)
    counts = np.bincount(bucket)
    positive_buckets = np.sort(bucket[is_positive])
    has_positive = np.zeros(len(counts), bool)
    has_positive[positive_buckets] = True
    close_scores = np.sort(scores[has_positive[bucket]])
    counts[has_positive] = 0
    n_in_higher_buckets = counts[::-1].cumsum()[::-1]
    n_close = len(close_scores) - np.searchsorted(close_scores, positive_scores)
    n_above: npt.NDArray[np.int64] = n_in_higher_buckets[positive_buckets] + n_close
    return n_above


def _buckets_for_tied_average_precision(scores: Array) -> npt.NDArray[np.int64]:
    """Return the bucket of each score, from 0; a higher score never has a lower bucket.

    The bits of a float, read as an integer, increase with the float once the bits of negative
    floats are inverted.
    """
    with np.errstate(over="ignore"):  # scores that overflow float32 share the bucket of infinity
        bits = (scores.astype(np.float32) + np.float32(0)).view(np.int32)  # + 0 turns -0 into 0
    bits ^= (bits >> 31) & 0x7FFFFFFF
    bucket = bits.astype(np.int64)
    bucket -= bucket.min()
    bucket >>= max(0, int(bucket.max()).bit_length() - BUCKET_BITS)
    return bucket
