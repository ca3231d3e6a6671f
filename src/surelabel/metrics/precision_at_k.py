"""Compute the precision of the k highest-scored labels of each image."""

import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.ranking.top_k_counts import count_top_k


def precision_at_k(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None, *, k: int = 3
) -> float:
    """Return the fraction of positives among the k highest-scored labels, pooled over images.

        P = hits / selected, pooled over images

    where selected is the number of selected labels and hits is the number of selected labels that
    are positive.

    Args:
        scores: Finite scores of n images and c classes, ``(n, c)``. A higher score means a more
            likely label.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. Only labels with a known target are
            ranked. If None, all targets except NaN are known.
        k: Number of labels that are selected in each image, >= 1. If an image has fewer than
            k labels with a known target, all of these labels are selected.

    Returns:
        Precision in [0, 1], where 1 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a score is not finite, a known
            target is neither 0 nor 1, or ``known`` is not Boolean.
        ConfigError: If ``k`` is not a whole number >= 1.

    Source:
        Overall precision at k (micro average); Gong et al., Deep Convolutional Ranking for
        Multilabel Image Annotation, arXiv:1312.4894.

    Differs:
        If labels tie for the last of the k ranks, the remaining ranks are divided equally among
        the tied labels.

    Example:
        >>> precision_at_k([[0.9, 0.8, 0.1]], [[1, 0, 1]], k=2)
        0.5
    """
    hits, selected, _ = count_top_k(scores, targets, known, k)
    return float(divide_or_nan(hits.sum(), selected.sum()))


def precision_at_k_per_class(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None, *, k: int = 3
) -> Array:
    """Return ``precision_at_k`` for each of the c classes, ``(c,)``.

    The value of a class that is never selected is NaN.

    Source:
        See ``precision_at_k``, computed here from the counts of each class.
    """
    hits, selected, _ = count_top_k(scores, targets, known, k)
    return divide_or_nan(hits, selected)
