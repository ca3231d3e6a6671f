"""Metrics that look only at the order of the scores: three averages of precision.

The precision at a positive is the share of positives among everything scored at least as high.
Average precision is its mean over the positives, which is the area under the steps of precision
over recall. Ties therefore count as one threshold, and no order among them is invented.
"""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.blocks import blocks
from surelabel.metrics.checked import checked_scores
from surelabel.metrics.ratio import ratio
from surelabel.records import Array, Flags

ROWS = 1024  # pictures compared at a time: what they need stays in the processor's cache
CELLS = 1 << 22  # labels compared with labels of a picture, so that memory stays small
BUCKETS = 16  # bits: as many buckets of scores as fit into the second-level cache


def average_precision(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Average precision of all decisions ranked together, whatever picture and class.

        AP = mean over positives i of  #{positives j: s_j >= s_i} / #{j: s_j >= s_i}

    Args:
        scores: Finite numbers, higher means more likely, ``(n, c)``.
        targets: 1 where present, 0 where absent, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.

    Returns:
        A number in [0, 1]; NaN without a known positive.

    Raises:
        InputError: shapes differ, or a score or a target is not what it must be.

    Source:
        Non-interpolated average precision as in scikit-learn's ``average_precision_score`` with
        ``average="micro"``.

    Example:
        >>> round(average_precision([[0.9, 0.8, 0.1]], [[1, 0, 1]]), 4)
        0.8333
    """
    scores, present, known = checked_scores(scores, targets, known)
    return _average_precision(scores[known], present[known])


def average_precision_per_class(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """Average precision of every class over its pictures.

    Args:
        scores: As for ``average_precision``.
        targets: As for ``average_precision``.
        known: As for ``average_precision``.

    Returns:
        ``(c,)`` in [0, 1]; NaN for a class without a known positive.

    Raises:
        InputError: as for ``average_precision``.

    Source:
        scikit-learn's ``average_precision_score`` of each column.

    Example:
        >>> average_precision_per_class([[0.9], [0.8], [0.1]], [[1], [0], [1]]).round(4)
        array([0.8333])
    """
    scores, present, known = checked_scores(scores, targets, known)
    columns = zip(*(np.ascontiguousarray(a.T) for a in (scores, present, known)), strict=True)
    return np.array([_average_precision(s[k], p[k]) for s, p, k in columns])


def average_precision_per_image(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """Average precision of every picture over its labels.

    Args:
        scores: As for ``average_precision``.
        targets: As for ``average_precision``.
        known: As for ``average_precision``.

    Returns:
        ``(n,)`` in [0, 1]; NaN for a picture without a known positive.

    Raises:
        InputError: as for ``average_precision``.

    Source:
        scikit-learn's ``average_precision_score`` of each row.

    Example:
        >>> average_precision_per_image([[0.9, 0.3], [0.8, 0.4]], [[1, 0], [0, 1]])
        array([1. , 0.5])
    """
    scores, present, known = checked_scores(scores, targets, known)
    rows = min(ROWS, 1 + CELLS // max(scores.shape[1] ** 2, 1))
    each = [
        _average_precision_of_rows(*block) for block in blocks(scores, present, known, rows=rows)
    ]
    return np.concatenate([*each, np.empty(0)])


def mean_average_precision(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Mean over classes of their average precision: "mAP", or mAP@y.

    Args:
        scores: As for ``average_precision``.
        targets: As for ``average_precision``.
        known: As for ``average_precision``.

    Returns:
        A number in [0, 1] over the classes that have a known positive; NaN if none has.

    Raises:
        InputError: as for ``average_precision``.

    Source:
        mAP@y in Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks,
        CVPR 2024, section 5.1.

    Differs:
        A class without positives is left out; the code of the asymmetric loss counts it as 0.

    Example:
        >>> mean_average_precision([[0.9, 0.3], [0.8, 0.4]], [[1, 0], [0, 0]])
        1.0
    """
    return _mean(average_precision_per_class(scores, targets, known))


def mean_average_precision_per_image(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Mean over pictures of the average precision of their labels: mAP@x.

    Args:
        scores: As for ``average_precision``.
        targets: As for ``average_precision``.
        known: As for ``average_precision``.

    Returns:
        A number in [0, 1] over the pictures that have a known positive; NaN if none has.

    Raises:
        InputError: as for ``average_precision``.

    Source:
        mAP@x in Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks,
        CVPR 2024, section 5.1.

    Example:
        >>> mean_average_precision_per_image([[0.9, 0.3], [0.8, 0.4]], [[1, 0], [0, 1]])
        0.75
    """
    return _mean(average_precision_per_image(scores, targets, known))


def _average_precision(scores: Array, present: Flags) -> float:
    """Of one list: for each positive, how many positives and how many in all score as high."""
    if not present.any():
        return float("nan")
    positives = np.sort(scores[present])
    found = len(positives) - np.searchsorted(positives, positives, side="left")
    return float((found / _as_high(scores, present, positives)).mean())


def _as_high(scores: Array, present: Flags, positives: Array) -> npt.NDArray[np.int64]:
    """For each of the sorted positives, how many scores are at least as high.

    Sorting everything would take most of the time. Instead all scores go into buckets by rough
    size; only those that share a bucket with a positive are sorted, the others are just counted.
    """
    bucket = _bucket(scores)
    counts = np.bincount(bucket)
    own = np.sort(bucket[present])
    shared = np.zeros(len(counts), bool)
    shared[own] = True
    close = np.sort(scores[shared[bucket]])
    counts[shared] = 0
    above = counts[::-1].cumsum()[::-1]
    listed: npt.NDArray[np.int64] = above[own] + len(close) - np.searchsorted(close, positives)
    return listed


def _bucket(scores: Array) -> npt.NDArray[np.int64]:
    """A number from 0 for each score that never falls where the score rises.

    The bits of a float, read as an integer, rise with it once those of negative ones are turned.
    """
    with np.errstate(over="ignore"):  # infinity is a bucket as good as any
        bits = (scores.astype(np.float32) + np.float32(0)).view(np.int32)  # + 0 makes -0 to 0
    bits ^= (bits >> 31) & 0x7FFFFFFF
    place = bits.astype(np.int64)
    place -= place.min()
    place >>= max(0, int(place.max()).bit_length() - BUCKETS)
    return place


def _average_precision_of_rows(scores: Array, present: Flags, known: Flags) -> Array:
    """Compare each positive with its row: rows are short and positives are few."""
    row, column = np.nonzero(present)
    above = scores[row] >= scores[row, column][:, None]
    found = np.count_nonzero(above & present[row], axis=1)
    listed = np.count_nonzero(above if known.all() else above & known[row], axis=1)
    return ratio(np.bincount(row, found / listed, len(scores)), present.sum(axis=1))


def _mean(values: Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
