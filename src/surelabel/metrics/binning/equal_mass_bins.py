"""Assign values to equal-mass bins, with equal values always in the same bin."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array


def assign_equal_mass_bins(values: Array, bins: int) -> npt.NDArray[np.intp]:
    """Return the bin of each value, from 0 to bins - 1, ``(n,)``.

    The bin of a value is computed from the mean rank of all equal values, so the order of the
    values has no effect. If each value is repeated equally often, the bins of the values do not
    change. If many values are equal, some bins may be empty.

    Args:
        values: Finite values, an array of length n.
        bins: Number of bins, >= 1.

    Example:
        >>> assign_equal_mass_bins(np.array([0.3, 0.1, 0.2, 0.4]), 2)
        array([1, 0, 0, 1])
        >>> assign_equal_mass_bins(np.array([0.3, 0.1, 0.1, 0.1]), 2)
        array([1, 0, 0, 0])
    """
    return np.searchsorted(_equal_mass_bin_edges(values, bins), values, side="right")


def _equal_mass_bin_edges(values: Array, bins: int) -> Array:
    """Return the lower edge of each bin except the first, or infinity if no value is left."""
    edge_numbers = np.arange(1, bins)
    if not len(values) or bins == 1:
        return np.full(bins - 1, np.inf)
    ranks = edge_numbers * len(values) // bins
    values_at_edges = np.partition(values, ranks)[ranks]
    return np.array(
        [
            _equal_mass_bin_edge(values, edge, at_edge, bins)
            for edge, at_edge in enumerate(values_at_edges, start=1)
        ]
    )


def _equal_mass_bin_edge(values: Array, edge: int, at_edge: float, bins: int) -> float:
    """Return the value at an edge, or the next higher value if the mean rank is below the edge."""
    rank_sum = np.count_nonzero(values < at_edge) + np.count_nonzero(values <= at_edge)
    if rank_sum * bins >= 2 * edge * len(values):
        return at_edge
    return float(np.min(values, where=values > at_edge, initial=np.inf))
