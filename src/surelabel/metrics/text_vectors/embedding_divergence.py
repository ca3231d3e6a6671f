"""Compute the distance of the text vector of each label to the nearest other labels."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.errors import InputError
from surelabel.metrics.arrays.input_validation import validate_metric_whole_number
from surelabel.metrics.proximity.neighbour_proximity import normalize_for_neighbour_proximity


def embedding_divergence(tuned: npt.ArrayLike, *, neighbours: int = 5) -> Array:
    """Return the mean cosine distance of each text vector to its nearest other text vectors.

        ED_i = mean over the k nearest labels j != i of  1 - cos(t_i, t_j)

    where t_i is the text vector of label i and k is ``neighbours``.

    Args:
        tuned: Text vectors of c labels, such as those of learned prompts, ``(c, d)``.
        neighbours: Number k of nearest labels, >= 1. If there are fewer other labels, all of them
            are used.

    Returns:
        Divergence of each label in [0, 2], ``(c,)``.

    Raises:
        InputError: If a vector is zero or not finite, or there are fewer than two labels.
        ConfigError: If ``neighbours`` is not a whole number >= 1.

    Source:
        Zhou et al., Rethinking BCE Loss for Multi-Label Image Recognition with Fine-Tuning,
        CVPR 2026. Only notes on the paper were available. The notes state neither the distance nor
        the number of neighbours, so both are our choice.

    Example:
        >>> embedding_divergence([[1, 0], [1, 0], [0, 1]], neighbours=1)
        array([0., 0., 1.])
    """
    cosines = cosines_of_other_texts("tuned", tuned)
    k = number_of_text_neighbours(neighbours, len(cosines))
    nearest = np.partition(cosines, -k, axis=1)[:, -k:]
    divergence: Array = np.maximum(1 - nearest, 0).mean(axis=1)
    return divergence


def cosines_of_other_texts(name: str, vectors: npt.ArrayLike) -> Array:
    """Return the cosine of each pair of text vectors, with -inf on the diagonal, ``(c, c)``.

    Args:
        name: Name of the argument, for error messages.
        vectors: Text vectors of c labels, ``(c, d)``.

    Raises:
        InputError: If a vector is zero or not finite, or there are fewer than two labels.
    """
    units = normalize_for_neighbour_proximity(name, vectors)
    if len(units) < 2:
        raise InputError(
            f"{name} must contain the vectors of at least two labels, because the metric compares "
            f"labels with each other; got {len(units)}. Add labels."
        )
    cosines: Array = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    return cosines


def number_of_text_neighbours(neighbours: int, n_labels: int) -> int:
    """Return the number of neighbours, at most the number of other labels.

    Raises:
        ConfigError: If ``neighbours`` is not a whole number >= 1.
    """
    return min(validate_metric_whole_number("neighbours", neighbours), n_labels - 1)
