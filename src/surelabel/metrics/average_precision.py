"""Compute the average precision of all labels, of each class and of each image.

The precision at a positive label is the fraction of positives among all labels with an equal or
higher score. Average precision is the mean of this precision over all positive labels, which equals
the area under the stepwise precision-recall curve. Tied scores share one threshold, so the order of
the rows has no effect.
"""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.input_validation import validate_ranking_metric_inputs
from surelabel.metrics.arrays.row_blocks import iterate_row_blocks, transpose_in_row_blocks
from surelabel.metrics.ranking.tied_average_precision import (
    tied_average_precision_of_ranking,
    tied_average_precision_of_rows,
)

ROWS_PER_BLOCK = 1024  # a block of images fits into the processor's cache
MAX_COMPARISONS = 1 << 22  # pairs of labels compared in one block, to bound the memory


def average_precision(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Return the average precision of all labels of all images in one ranking (micro average).

        AP = mean over positives i of  #{positives j: s_j >= s_i} / #{j: s_j >= s_i}

    where i and j are labels of any image, s_i is the score of label i and #{...} is the number of
    elements of a set.

    Args:
        scores: Finite scores of n images and c classes, ``(n, c)``. A higher score means a more
            likely label.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Average precision in [0, 1], where 1 is best. If no positive is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a score is not finite, a known
            target is neither 0 nor 1, or ``known`` is not Boolean.

    Source:
        Non-interpolated average precision as in scikit-learn's ``average_precision_score`` with
        ``average="micro"``.

    Example:
        >>> round(average_precision([[0.9, 0.8, 0.1]], [[1, 0, 1]]), 4)
        0.8333
    """
    scores, is_positive, known = validate_ranking_metric_inputs(scores, targets, known)
    return tied_average_precision_of_ranking(scores[known], is_positive[known])


def average_precision_per_class(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """Return the average precision of each class over all images.

    Args:
        scores: Finite scores of n images and c classes, ``(n, c)``. A higher score means a more
            likely label.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Average precision of each class in [0, 1], ``(c,)``. The value of a class without known
        positives is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a score is not finite, a known
            target is neither 0 nor 1, or ``known`` is not Boolean.

    Source:
        scikit-learn's ``average_precision_score``, computed for each column.

    Example:
        >>> average_precision_per_class([[0.9], [0.8], [0.1]], [[1], [0], [1]]).round(4)
        array([0.8333])
    """
    scores, is_positive, known = validate_ranking_metric_inputs(scores, targets, known)
    columns = zip(*map(transpose_in_row_blocks, (scores, is_positive)), strict=True)
    if known.all():
        return np.array([tied_average_precision_of_ranking(s, p) for s, p in columns])
    known_columns = zip(columns, transpose_in_row_blocks(known), strict=True)
    return np.array([tied_average_precision_of_ranking(s[k], p[k]) for (s, p), k in known_columns])


def average_precision_per_image(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """Return the average precision of each image over all labels of the image.

    Args:
        scores: Finite scores of n images and c classes, ``(n, c)``. A higher score means a more
            likely label.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Average precision of each image in [0, 1], ``(n,)``. The value of an image without known
        positives is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a score is not finite, a known
            target is neither 0 nor 1, or ``known`` is not Boolean.

    Source:
        scikit-learn's ``average_precision_score``, computed for each row.

    Example:
        >>> average_precision_per_image([[0.9, 0.3], [0.8, 0.4]], [[1, 0], [0, 1]])
        array([1. , 0.5])
    """
    scores, is_positive, known = validate_ranking_metric_inputs(scores, targets, known)
    rows = min(ROWS_PER_BLOCK, 1 + MAX_COMPARISONS // max(scores.shape[1] ** 2, 1))
    per_block = [
        tied_average_precision_of_rows(*block)
        for block in iterate_row_blocks(scores, is_positive, known, rows=rows)
    ]
    return np.concatenate([*per_block, np.empty(0)])
