"""Count hits for precision, recall and F1 of the k highest-scored labels of each image.

If labels tie for the last of the k ranks, the remaining ranks are divided equally among the tied
labels. The counts are means over all orders of the tied labels, so the order of the classes has no
effect.
"""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.metrics.arrays.input_validation import (
    validate_metric_whole_number,
    validate_ranking_metric_inputs,
)
from surelabel.metrics.arrays.row_blocks import iterate_row_blocks


def count_top_k(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None, k: int
) -> tuple[Array, Array, Array]:
    """Count hits (selected positives), selected labels and known positives of each class.

    Args:
        scores: Finite scores of n images and c classes, ``(n, c)``. A higher score means a more
            likely label.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        k: Number of labels with a known target that are selected in each image, >= 1.

    Returns:
        Selected positives, selected labels and known positives of each class, each ``(c,)``.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a score is not finite, a known
            target is neither 0 nor 1, or ``known`` is not Boolean.
        ConfigError: If ``k`` is not a whole number >= 1.
    """
    k = validate_metric_whole_number("k", k)
    scores, is_positive, known = validate_ranking_metric_inputs(scores, targets, known)
    n_selected, counts = min(k, scores.shape[1]), np.zeros((3, scores.shape[1]))
    for block in iterate_row_blocks(scores, is_positive, known) if n_selected else ():
        counts += _count_top_k_of_block(*block, k=n_selected)
    hits, selected, positives = counts
    return hits, selected, positives


def _count_top_k_of_block(scores: Array, is_positive: Flags, known: Flags, *, k: int) -> Array:
    """Count hits, selected labels and positives in a block of images, ``(3, c)``."""
    ranked_scores = scores if known.all() else np.where(known, scores, -np.inf)
    kth_score = np.partition(ranked_scores, -k, axis=1)[:, [-k]]
    is_selected = ranked_scores >= kth_score
    if ranked_scores is not scores:
        is_selected &= known
    counts = np.zeros((3, scores.shape[1]))
    if np.count_nonzero(is_selected) != k * len(is_selected):  # an image has ties at rank k
        tied = np.count_nonzero(is_selected, axis=1) > k
        counts[:2] = _count_tied_top_k(
            ranked_scores[tied], is_positive[tied], known[tied], kth_score[tied], k
        )
        is_selected[tied] = False
    for count, mask in zip(
        counts, (is_selected & is_positive, is_selected, is_positive), strict=True
    ):
        count += mask.sum(axis=0, dtype=np.uint16)  # a block has fewer than 2**16 images
    return counts


def _count_tied_top_k(
    scores: Array, is_positive: Flags, known: Flags, kth_score: Array, k: int
) -> tuple[Array, Array]:
    """Count hits and selected labels, ``(c,)`` each, of images with ties at the k-th score."""
    above, at_kth = scores > kth_score, (scores == kth_score) & known
    free_ranks, n_tied = k - np.count_nonzero(above, axis=1), np.count_nonzero(at_kth, axis=1)
    share = above + (free_ranks / n_tied)[:, None] * at_kth
    return (share * is_positive).sum(axis=0), share.sum(axis=0)
