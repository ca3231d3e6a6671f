"""Bins that hold about as many values each. Equal values are never put into different bins."""

import numpy as np
import numpy.typing as npt

from surelabel.records import Array


def equal_mass(values: Array, bins: int) -> npt.NDArray[np.intp]:
    """The bin of every value, ``(n,)``.

    The place of a value is the middle of all the ranks that it ties for, so the order of the rows
    does not matter and twice the data gives the same bins. Many ties leave some bins empty.

    Example:
        >>> equal_mass(np.array([0.3, 0.1, 0.2, 0.4]), 2)
        array([1, 0, 0, 1])
        >>> equal_mass(np.array([0.3, 0.1, 0.1, 0.1]), 2)
        array([1, 0, 0, 0])
    """
    return np.searchsorted(_least(values, bins), values, side="right")


def _least(values: Array, bins: int) -> Array:
    """The smallest value of every bin but the first, infinite where there is none."""
    edges = np.arange(1, bins)
    if not len(values) or bins == 1:
        return np.full(bins - 1, np.inf)
    ranks = edges * len(values) // bins
    at_edge = np.partition(values, ranks)[ranks]
    return np.array([_from(values, edge, at, bins) for edge, at in enumerate(at_edge, start=1)])


def _from(values: Array, edge: int, at_edge: float, bins: int) -> float:
    """The value at the edge, or the next above where the middle of its ranks lies below."""
    ranks = np.count_nonzero(values < at_edge) + np.count_nonzero(values <= at_edge)
    if ranks * bins >= 2 * edge * len(values):
        return at_edge
    return float(np.min(values, where=values > at_edge, initial=np.inf))
