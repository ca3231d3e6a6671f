"""Define a tree of labels, such as animal > dog, and what it implies for targets and logits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array, ColumnIndices
from surelabel.counts import format_count
from surelabel.errors import DataError, InputError
from surelabel.shapes import check_shapes

NO_PARENT = -1


@dataclass(frozen=True)
class LabelTree:
    """Tree, or several trees, in which each image with a label also has the parent of the label.

    Attributes:
        parents: Parent of each label that has one.

    Raises:
        InputError: If a label is its own ancestor.

    Example:
        >>> tree = LabelTree({"dog": "animal", "puppy": "dog"})
        >>> tree.ancestors("puppy")
        ['dog', 'animal']
    """

    parents: Mapping[str, str]

    def __post_init__(self) -> None:
        for label in self.parents:
            self.ancestors(label)

    def ancestors(self, label: str) -> list[str]:
        """Return the ancestors of a label, the parent first.

        Raises:
            InputError: If the label is its own ancestor.
        """
        found: list[str] = []
        parent = self.parents.get(label)
        while parent is not None:
            if parent == label or parent in found:
                raise InputError(
                    f"A label must not be its own ancestor; got {' > '.join([label, *found])}, "
                    f"whose parent is {parent!r}. Remove one of these parents."
                )
            found.append(parent)
            parent = self.parents.get(parent)
        return found

    def parent_columns(self, names: Sequence[str]) -> ColumnIndices:
        """Return the column of the parent of each label, or -1 without a parent, ``(c,)``.

        Args:
            names: Labels of the columns.

        Raises:
            InputError: If a label of the tree is not in ``names``.
        """
        column_of = {name: column for column, name in enumerate(names)}
        unknown = sorted({*self.parents, *self.parents.values()} - column_of.keys())
        if unknown:
            raise InputError(
                f"All labels of the tree must be labels of the recognizer; got "
                f"{format_count(len(unknown), 'other label')}, such as {unknown[0]!r}. Add the "
                "labels, or remove them from the tree."
            )
        columns = np.full(len(names), NO_PARENT, np.intp)
        for label, parent in self.parents.items():
            columns[column_of[label]] = column_of[parent]
        return columns


def order_of_descent(parent_columns: ColumnIndices) -> list[int]:
    """Return all columns so that each parent is before its children.

    Args:
        parent_columns: Column of the parent of each label, or -1, ``(c,)``; without cycles.
    """
    children = children_of_columns(parent_columns)
    order = [column for column, parent in enumerate(parent_columns) if parent == NO_PARENT]
    for column in order:  # the list grows during the loop
        order += children[column]
    return order


def children_of_columns(parent_columns: ColumnIndices) -> list[list[int]]:
    """Return the columns of the children of each label.

    Args:
        parent_columns: Column of the parent of each label, or -1, ``(c,)``.
    """
    children: list[list[int]] = [[] for _ in parent_columns]
    for column, parent in enumerate(parent_columns):
        if parent != NO_PARENT:
            children[parent].append(column)
    return children


def extend_targets(targets: Array, parent_columns: ColumnIndices) -> Array:
    """Return targets extended by those that follow from the tree.

    A positive label makes its ancestors positive, and a negative label makes its descendants
    negative. A parent of negative labels remains unknown, because an image can have another child.
    Targets between 0 and 1 imply nothing.

    Args:
        targets: Targets in [0, 1], NaN = unknown, ``(n, c)``.
        parent_columns: Column of the parent of each label, or -1, ``(c,)``.

    Raises:
        DataError: If a positive label has a negative ancestor in an image.
    """
    check_shapes(targets=(targets, "n c"), parent_columns=(parent_columns, "c"))
    extended = np.array(targets, dtype=np.float64)
    order = [column for column in order_of_descent(parent_columns) if parent_columns[column] >= 0]
    for column in reversed(order):
        parent = parent_columns[column]
        is_positive = extended[:, column] == 1
        if (wrong := np.flatnonzero(is_positive & (extended[:, parent] == 0))).size:
            raise DataError(
                f"A positive label must not have a negative ancestor; got both in row {wrong[0]}: "
                f"column {column} is positive, and its parent in column {parent} is negative "
                "(counted from 0). Correct the targets or the tree."
            )
        extended[is_positive, parent] = 1
    for column in order:
        is_implied = (extended[:, parent_columns[column]] == 0) & np.isnan(extended[:, column])
        extended[is_implied, column] = 0
    return extended


def isotonic_logits(logits: Array, parent_columns: ColumnIndices) -> Array:
    r"""Return the nearest logits in which no label is more probable than its parent.

        argmin over z' of Σ (z' - z)²  subject to  z'(parent) >= z'(child)

    The solution is exact. Without its ancestors, the value of a label is the largest mean of a
    connected part of the tree that consists of the label and some or none of its descendants. If
    the parent has the value v, the label has the smaller one of this mean and v. The mean u is the
    root of a convex, decreasing, piecewise linear function,

        h(u) = z - u + Σ over the children of max(0, h(u) of the child),

    which Newton's method finds in a finite number of steps from u = z.

    Args:
        logits: Finite logits, ``(n, c)``.
        parent_columns: Column of the parent of each label, or -1, ``(c,)``; without cycles.

    Returns:
        Logits ``(n, c)``. Logits that satisfy the condition are returned unchanged.

    Source:
        P. M. Pardalos and G. Xue, "Algorithms for a class of isotonic regression problems",
        Algorithmica 23, 1999: isotonic regression on a tree. The Newton iteration is ours.
    """
    check_shapes(logits=(logits, "n c"), parent_columns=(parent_columns, "c"))
    children = children_of_columns(parent_columns)
    order = order_of_descent(parent_columns)
    means = np.array(logits, dtype=np.float64)
    for column in reversed(order):
        if children[column]:
            means[:, column] = _largest_means(logits, means, column, children)
    for column in order:
        if (parent := parent_columns[column]) != NO_PARENT:
            means[:, column] = np.minimum(means[:, column], means[:, parent])
    return means


def _largest_means(
    logits: Array, means: Array, root: int, children: Sequence[Sequence[int]]
) -> Array:
    """Return the largest mean logit of a connected part with the label ``root`` on top, ``(n,)``.

    Args:
        logits: Logits ``(n, c)``.
        means: Largest means of the descendants of ``root``, in their columns, ``(n, c)``.
        root: Column of the label.
        children: Columns of the children of each label.
    """
    mean = logits[:, root].copy()
    rows = np.arange(len(logits))
    while rows.size:
        total, count = logits[rows, root].copy(), np.ones(len(rows))
        parts = [(child, np.ones(len(rows), bool)) for child in children[root]]
        while parts:
            column, has_parent = parts.pop()
            is_part = has_parent & (means[rows, column] > mean[rows])
            total[is_part] += logits[rows[is_part], column]
            count += is_part
            if is_part.any():
                parts += [(child, is_part) for child in children[column]]
        new = np.maximum(total / count, mean[rows])  # rounding must not lower the mean
        is_larger = new > mean[rows]
        mean[rows] = new
        rows = rows[is_larger]
    return mean
