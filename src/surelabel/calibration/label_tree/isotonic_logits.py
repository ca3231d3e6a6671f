"""Project logits so that no label is more probable than its parent in a tree of labels."""

import numpy as np

from surelabel.arrays import Array, ColumnIndices
from surelabel.records import descendant_columns
from surelabel.shapes import check_shapes


def isotonic_logits(logits: Array, parent_columns: ColumnIndices) -> Array:
    r"""Return the nearest logits in which no label is more probable than its parent.

        argmin over z' of Σ (z' - z)²  subject to  z'(parent) >= z'(child)

    The solution is exact. The labels with children are visited from the bottom of the tree to its
    top. The projected logits of the descendants of a label are sorted, x1 >= x2 >= …. The label
    receives the largest of the means of z and x1 to xm, for m = 0, 1, …, and the logits of the
    descendants are limited to this value.

    Args:
        logits: Finite logits, ``(n, c)``.
        parent_columns: Column of the parent of each label, or -1, ``(c,)``; without cycles.

    Returns:
        Logits ``(n, c)``. Logits that satisfy the condition are returned unchanged.

    Source:
        P. M. Pardalos and G. Xue, "Algorithms for a class of isotonic regression problems",
        Algorithmica 23, 1999: isotonic regression on a tree.

    Differs:
        Values of blocks are sorted for each label, instead of being kept in heaps. All rows of
        logits are computed at once.
    """
    check_shapes(logits=(logits, "n c"), parent_columns=(parent_columns, "c"))
    projected = np.array(logits, dtype=np.float64)
    for column, descendants in descendant_columns(parent_columns):
        rows = np.flatnonzero(projected[:, descendants].max(axis=1) > projected[:, column])
        below = projected[np.ix_(rows, descendants)]
        values = np.concatenate([projected[rows, column, None], -np.sort(-below)], axis=1)
        means = np.cumsum(values, axis=1) / np.arange(1, values.shape[1] + 1)
        largest = means.max(axis=1)
        projected[rows, column] = largest
        projected[np.ix_(rows, descendants)] = np.minimum(below, largest[:, None])
    return projected
