"""Store decision trees as buffers of a module, without pickle, and sum their leaf values."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from surelabel.arrays import Array
from surelabel.errors import NotFitted
from surelabel.methods.decision_trees.tree_nodes import (
    TreeNodes,
    join_tree_nodes,
    leaves_of_vectors,
    tree_node_error,
)

ENTRIES_PER_BLOCK = 2**20  # largest number of vectors times trees in one computation
ALL_LABELS = -1  # label of a tree whose leaves have one value per label
NODE_ARRAYS = tuple(field.name for field in fields(TreeNodes))


class TreeEnsemble(nn.Module):
    """Compute for each label the sum of the leaf values of decision trees.

    The nodes of all trees are concatenated. Before ``set_trees``, there are no trees.

    Args:
        width: Width of the vectors (d).
        n_labels: Number of labels (c).

    Attributes:
        roots: Node number of the root of each tree, ``(t,)``.
        labels: Label of each tree, in ascending order, ``(t,)``. If each leaf has one value per
            label, the label of all trees is -1.
        values: Values of the leaves in the order of the nodes, ``(leaves, 1)``, or
            ``(leaves, c)`` if each leaf has one value per label.
        feature, threshold, left, right, missing_goes_left: Arrays of the nodes; see ``TreeNodes``.
    """

    roots: Tensor
    labels: Tensor
    values: Tensor
    feature: Tensor
    threshold: Tensor
    left: Tensor
    right: Tensor
    missing_goes_left: Tensor

    def __init__(self, width: int, n_labels: int):
        super().__init__()
        self.width, self.n_labels = width, n_labels
        for name in ("roots", "labels", "feature", "left", "right"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int32))
        self.register_buffer("threshold", torch.zeros(0))
        self.register_buffer("missing_goes_left", torch.zeros(0, dtype=torch.bool))
        self.register_buffer("values", torch.zeros(0, 1))

    def set_trees(
        self, trees: Sequence[TreeNodes], values: Sequence[Array], labels: Sequence[int]
    ) -> None:
        """Replace all trees.

        Args:
            trees: Nodes of t trees, one or more.
            values: Finite values of the leaves of each tree, ``(leaves, 1)`` or ``(leaves, c)``.
            labels: Label of each tree, in ascending order, with at least one tree per label. If
                each leaf has one value per label, the label of all trees is -1.
        """
        nodes, roots = join_tree_nodes(list(trees))
        arrays = {**vars(nodes), "roots": roots, "labels": np.asarray(labels, dtype=np.int32)}
        arrays["values"] = np.concatenate(values).astype(np.float32)
        for name, array in arrays.items():
            setattr(self, name, torch.from_numpy(array).to(self.values.device))

    @property
    def n_trees(self) -> npt.NDArray[np.int64]:
        """Return the number of trees of each label, ``(c,)``."""
        labels = self.labels.cpu().numpy()
        if len(labels) and labels[0] == ALL_LABELS:
            return np.full(self.n_labels, len(labels))
        return np.bincount(labels, minlength=self.n_labels)

    def forward(self, vectors: Tensor) -> Array:
        """Return the sum of the leaf values of the trees of each label, ``(n, c)``.

        Args:
            vectors: Vectors, ``(n, d)``; NaN is a missing value.

        Raises:
            NotFitted: If there are no trees.
        """
        if not len(self.roots):
            raise NotFitted("Decision trees must be fitted before images are scored. Call fit.")
        array = vectors.detach().to("cpu", torch.float32).numpy()
        rows = max(1, ENTRIES_PER_BLOCK // len(self.roots))
        nodes, roots = self._nodes(), self.roots.cpu().numpy()
        row_of_leaf = np.cumsum(nodes.is_leaf) - 1
        sums = np.empty((len(array), self.n_labels))
        for start in range(0, len(array), rows):
            leaves = leaves_of_vectors(array[start : start + rows], nodes, roots)
            sums[start : start + rows] = self._sum_leaf_values(row_of_leaf[leaves])
        return sums

    def _sum_leaf_values(self, rows: npt.NDArray[np.int64]) -> Array:
        """Return the sums of the leaf values at the given rows of ``values``, ``(n, c)``."""
        values, labels = self.values.cpu().numpy(), self.labels.cpu().numpy()
        if labels[0] != ALL_LABELS:
            first_trees = np.searchsorted(labels, np.arange(self.n_labels))
            single_values = values[rows, 0].astype(np.float64)
            sums: Array = np.add.reduceat(single_values, first_trees, axis=1)
            return sums
        sums = np.zeros((len(rows), self.n_labels))
        for rows_of_tree in rows.T:
            sums += values[rows_of_tree]
        return sums

    def _nodes(self) -> TreeNodes:
        return TreeNodes(*(getattr(self, name).cpu().numpy() for name in NODE_ARRAYS))

    def _load_from_state_dict(
        self,
        state: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_messages: list[str],
    ) -> None:
        """Load any number of trees and nodes, and report an error if their arrays are invalid."""
        values = {name: state.get(f"{prefix}{name}") for name in self._buffers}
        arrays = {name: value for name, value in values.items() if isinstance(value, Tensor)}
        if len(arrays) == len(values):
            error = self._error_of_arrays(arrays)
            if error:
                error_messages.append(f"The decision trees are damaged: {error}.")
                return
            for name, array in arrays.items():
                setattr(self, name, torch.empty_like(array, device=self.values.device))
        super()._load_from_state_dict(
            state,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_messages,
        )

    def _error_of_arrays(self, arrays: dict[str, Tensor]) -> str | None:
        """Return an error message if arrays from a file are invalid, and None otherwise."""
        for name, array in arrays.items():
            expected = self._buffers[name]
            assert expected is not None
            if array.dtype != expected.dtype or array.ndim != expected.ndim:
                return (
                    f"{name} must have ndim={expected.ndim} and dtype={expected.dtype}; got "
                    f"ndim={array.ndim} and dtype={array.dtype}"
                )
        if not len(arrays["roots"]) and not len(arrays["feature"]):  # not fitted
            return None
        if len(arrays["labels"]) != len(arrays["roots"]):
            return "roots and labels of the trees must have equal lengths"
        read = {name: array.cpu().numpy() for name, array in arrays.items()}
        nodes = TreeNodes(*(read[name] for name in NODE_ARRAYS))
        error = tree_node_error(nodes, read["roots"], self.width)
        return error or self._error_of_values(nodes, read["labels"], read["values"])

    def _error_of_values(
        self,
        nodes: TreeNodes,
        labels: npt.NDArray[np.int32],
        values: npt.NDArray[np.float32],
    ) -> str | None:
        """Return an error message if labels or leaf values are invalid, and None otherwise."""
        has_all_labels = bool((labels == ALL_LABELS).all())
        covers_labels = np.array_equal(np.unique(labels), np.arange(self.n_labels))
        is_ascending = bool((np.diff(labels) >= 0).all())
        if not has_all_labels and not (covers_labels and is_ascending):
            return f"labels of the trees must be ascending and cover {self.n_labels} labels"
        shape = (int(nodes.is_leaf.sum()), self.n_labels if has_all_labels else 1)
        if values.shape != shape:
            return f"values must have the shape {shape}; got {values.shape}"
        return None if np.isfinite(values).all() else "values of leaves must be finite"
