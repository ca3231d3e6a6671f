"""Define a tree of labels, such as animal > dog, and what it implies for targets and logits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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

    def path(self, label: str) -> list[str]:
        """Return a label with its ancestors, from the top of the tree to the label."""
        return [*reversed(self.ancestors(label)), label]

    def restricted_to(self, names: Sequence[str]) -> "LabelTree | None":
        """Return the tree of some labels, whose parents are their nearest remaining ancestors.

        Args:
            names: Remaining labels; they can include labels that are not in the tree.

        Returns:
            The tree, or None if no label has a parent.
        """
        remaining = set(names)
        nearest = {
            name: next((label for label in self.ancestors(name) if label in remaining), None)
            for name in names
        }
        parents = {name: parent for name, parent in nearest.items() if parent is not None}
        return LabelTree(parents) if parents else None

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

    def extend_targets(
        self, targets: Array, names: Sequence[str], paths: Sequence[str] = ()
    ) -> Array:
        """Return targets extended by implied targets, where these distort frequencies less.

        For each label, let a be the fraction of the images with an implied target in which the
        label is annotated, and k this fraction of the other images. If a random part of the images
        is annotated, a and k are equal, and additional implied targets would distort the frequency
        of the label, because all implied targets of a leaf are 0, and all of a label without a
        parent are 1. If a label is annotated only where the tree implies nothing, a is 0, and
        without the implied targets the frequency would be distorted. Therefore, implied targets are
        added to a label if 1 / k is closer to 1 than a / k, as a factor.

        Args:
            targets: Targets in [0, 1], NaN = unknown, ``(n, c)``.
            names: Labels of the columns, length c.
            paths: Path of each image for the error, length n. If empty, the error has the row.

        Raises:
            InputError: If a label of the tree is not in ``names``.
            DataError: If a positive label has a negative ancestor in an image.
        """
        implied = self.implied_targets(targets, names, paths)
        is_implied, known = ~np.isnan(implied), ~np.isnan(targets)
        n_implied, n_others = is_implied.sum(axis=0), (~is_implied).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            annotated = (known & is_implied).sum(axis=0) / n_implied
            others = (known & ~is_implied).sum(axis=0) / n_others
            with_implied, without = np.abs(np.log(others)), np.abs(np.log(annotated / others))
        is_extended = with_implied < without  # False if k is 0 or not defined
        return np.where(np.isnan(targets) & is_extended, implied, targets)

    def implied_targets(
        self, targets: Array, names: Sequence[str], paths: Sequence[str] = ()
    ) -> Array:
        """Return the targets that follow from other labels of the same image, otherwise NaN.

        A positive label makes its ancestors positive, and a negative label makes its descendants
        negative. A parent of negative labels remains unknown, because an image can have another
        child. Targets between 0 and 1 imply nothing.

        Args:
            targets: Targets in [0, 1], NaN = unknown, ``(n, c)``.
            names: Labels of the columns, length c.
            paths: Path of each image for the error, length n. If empty, the error has the row.

        Raises:
            InputError: If a label of the tree is not in ``names``.
            DataError: If a positive label has a negative ancestor in an image.
        """
        parent_columns = self.parent_columns(names)
        check_shapes(targets=(targets, "n c"), parent_columns=(parent_columns, "c"))
        has_positive_descendant = np.zeros(targets.shape, dtype=bool)
        has_negative_ancestor = np.zeros(targets.shape, dtype=bool)
        order = [
            column
            for column in order_of_descent(parent_columns)
            if parent_columns[column] != NO_PARENT
        ]
        for column in reversed(order):
            is_positive = has_positive_descendant[:, column] | (targets[:, column] == 1)
            has_positive_descendant[:, parent_columns[column]] |= is_positive
        for column in order:
            parent = parent_columns[column]
            is_negative = has_negative_ancestor[:, parent] | (targets[:, parent] == 0)
            wrong = np.flatnonzero(is_negative & (targets[:, column] == 1))
            if wrong.size:
                raise self._contradiction(targets[wrong[0]], names, column, wrong, paths)
            has_negative_ancestor[:, column] = is_negative
        return np.select([has_positive_descendant, has_negative_ancestor], [1.0, 0.0], np.nan)

    def _contradiction(
        self,
        targets: Array,
        names: Sequence[str],
        column: int,
        wrong: npt.NDArray[np.intp],
        paths: Sequence[str],
    ) -> DataError:
        """Return the error of an image with a positive label and a negative ancestor."""
        column_of = {name: column for column, name in enumerate(names)}
        ancestor = next(
            name for name in self.ancestors(names[column]) if targets[column_of[name]] == 0
        )
        row = paths[wrong[0]] if paths else f"row {wrong[0]}"
        others = format_count(len(wrong) - 1, "other image")
        return DataError(
            f"{row}: a positive label must not have a negative ancestor; got {names[column]!r} "
            f"positive and {ancestor!r} negative{f' (and in {others})' if len(wrong) > 1 else ''}. "
            "Correct the annotations or the label tree."
        )


def order_of_descent(parent_columns: Sequence[int] | ColumnIndices) -> list[int]:
    """Return all columns so that each parent is before its children.

    Columns that are their own ancestors, and the descendants of these columns, are left out.

    Args:
        parent_columns: Column of the parent of each label, or -1, ``(c,)``.
    """
    children: list[list[int]] = [[] for _ in parent_columns]
    order: list[int] = []
    for column, parent in enumerate(parent_columns):
        (order if parent == NO_PARENT else children[parent]).append(column)
    for column in order:  # the list grows during the loop
        order += children[column]
    return order


def descendant_columns(
    parent_columns: Sequence[int] | ColumnIndices,
) -> list[tuple[int, ColumnIndices]]:
    """Return each column with children, and the columns of its descendants.

    Args:
        parent_columns: Column of the parent of each label, or -1, ``(c,)``; without cycles.

    Returns:
        Pairs of a column and its descendants. A column is after all its descendants.
    """
    below: dict[int, list[int]] = {}
    for column in reversed(order_of_descent(parent_columns)):
        if (parent := int(parent_columns[column])) != NO_PARENT:
            below.setdefault(parent, []).extend([column, *below.get(column, [])])
    order = reversed(order_of_descent(parent_columns))
    return [(column, np.array(below[column], np.intp)) for column in order if column in below]
