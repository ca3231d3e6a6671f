"""Average precision of all labels, of each class and of each image.

The precision at a positive is the share of positives among all labels scored at least as high.
Average precision is its mean over the positives: the area under the precision-recall steps. Tied
scores share one threshold, so the order of the rows has no influence.
"""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.arrays.input_validation import validate_scores
from surelabel.metrics.arrays.row_blocks import iterate_row_blocks
from surelabel.metrics.ranking.tied_average_precision import (
    average_precision_of_ranking,
    average_precision_of_rows,
)
from surelabel.records import Array

ROWS_PER_BLOCK = 1024  # a block of images fits into the processor's cache
MAX_COMPARISONS = 1 << 22  # pairs of labels compared in one block, to bound the memory


def average_precision(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Return the average precision of all labels of all images in one ranking (micro average).

        AP = mean over positives i of  #{positives j: s_j >= s_i} / #{j: s_j >= s_i}

    Args:
        scores: Finite scores, a higher score means more likely, ``(n, c)``.
        targets: 1 for positive, 0 for negative, NaN for unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.

    Returns:
        Average precision in [0, 1], 1 is best; NaN without a known positive.

    Raises:
        InputError: If the shapes differ, a score is not finite, or a known target is neither 0
            nor 1.

    Source:
        Non-interpolated average precision as in scikit-learn's ``average_precision_score`` with
        ``average="micro"``.

    Example:
        >>> round(average_precision([[0.9, 0.8, 0.1]], [[1, 0, 1]]), 4)
        0.8333
    """
    scores, is_positive, known = validate_scores(scores, targets, known)
    return average_precision_of_ranking(scores[known], is_positive[known])


def average_precision_per_class(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """Return the average precision of each class over its images.

    Args:
        scores: Finite scores, a higher score means more likely, ``(n, c)``.
        targets: 1 for positive, 0 for negative, NaN for unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.

    Returns:
        Average precision in [0, 1], ``(c,)``; NaN for a class without a known positive.

    Raises:
        InputError: If the shapes differ, a score is not finite, or a known target is neither 0
            nor 1.

    Source:
        scikit-learn's ``average_precision_score`` of each column.

    Example:
        >>> average_precision_per_class([[0.9], [0.8], [0.1]], [[1], [0], [1]]).round(4)
        array([0.8333])
    """
    scores, is_positive, known = validate_scores(scores, targets, known)
    columns = zip(*(np.ascontiguousarray(a.T) for a in (scores, is_positive, known)), strict=True)
    return np.array([average_precision_of_ranking(s[k], p[k]) for s, p, k in columns])


def average_precision_per_image(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """Return the average precision of each image over its labels.

    Args:
        scores: Finite scores, a higher score means more likely, ``(n, c)``.
        targets: 1 for positive, 0 for negative, NaN for unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.

    Returns:
        Average precision in [0, 1], ``(n,)``; NaN for an image without a known positive.

    Raises:
        InputError: If the shapes differ, a score is not finite, or a known target is neither 0
            nor 1.

    Source:
        scikit-learn's ``average_precision_score`` of each row.

    Example:
        >>> average_precision_per_image([[0.9, 0.3], [0.8, 0.4]], [[1, 0], [0, 1]])
        array([1. , 0.5])
    """
    scores, is_positive, known = validate_scores(scores, targets, known)
    rows = min(ROWS_PER_BLOCK, 1 + MAX_COMPARISONS // max(scores.shape[1] ** 2, 1))
    per_block = [
        average_precision_of_rows(*block)
        for block in iterate_row_blocks(scores, is_positive, known, rows=rows)
    ]
    return np.concatenate([*per_block, np.empty(0)])
