"""Measure how well the nearest labels of each label are preserved when text vectors change."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.metrics.text_vectors.embedding_divergence import (
    cosines_of_other_texts,
    number_of_text_neighbours,
)
from surelabel.shapes import check_shapes


def neighbourhood_preservation(
    tuned: npt.ArrayLike, frozen: npt.ArrayLike, *, neighbours: int = 5
) -> Array:
    """Return the fraction of nearest labels of each label that two sets of text vectors share.

        NP@k_i = |N_k(i; tuned) ∩ N_k(i; frozen)| / k

    where N_k(i; t) are the k labels with the highest cosine to label i among the text vectors t.

    Args:
        tuned: Text vectors of c labels after prompts were learned, ``(c, d)``.
        frozen: Text vectors of the same labels from the frozen text encoder, ``(c, e)``.
        neighbours: Number k of nearest labels, >= 1. If there are fewer other labels, all of them
            are used. Labels with equal cosines are ranked in the order of the rows.

    Returns:
        Fraction of the nearest labels of each label that are preserved, in [0, 1], ``(c,)``.

    Raises:
        InputError: If the numbers of labels differ, a vector is zero or not finite, or there are
            fewer than two labels.
        ConfigError: If ``neighbours`` is not a whole number >= 1.

    Source:
        Zhou et al., Rethinking BCE Loss for Multi-Label Image Recognition with Fine-Tuning,
        CVPR 2026. Only notes on the paper were available, without a formula of "neighbourhood
        rank preservation". The formula is ours and ignores the order within the k nearest labels.

    Example:
        >>> frozen = [[1, 0], [0.9, 0.1], [0, 1]]
        >>> neighbourhood_preservation([[1, 0], [0.1, 0.9], [0, 1]], frozen, neighbours=1)
        array([1., 0., 1.])
    """
    tuned_cosines = cosines_of_other_texts("tuned", tuned)
    frozen_cosines = cosines_of_other_texts("frozen", frozen)
    check_shapes(tuned=(tuned_cosines, "c c"), frozen=(frozen_cosines, "c c"))
    k = number_of_text_neighbours(neighbours, len(tuned_cosines))
    is_shared = _nearest_text_flags(tuned_cosines, k) & _nearest_text_flags(frozen_cosines, k)
    preservation: Array = is_shared.sum(axis=1) / k
    return preservation


def _nearest_text_flags(cosines: Array, k: int) -> Flags:
    """Return True for the k nearest labels of each label, ``(c, c)``."""
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    flags = np.zeros(cosines.shape, dtype=bool)
    np.put_along_axis(flags, nearest, True, axis=1)
    return flags
