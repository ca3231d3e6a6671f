"""Store the nodes of decision trees as arrays, and find the leaf of each vector in each tree."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

NO_CHILD = -1  # left and right child of a leaf


@dataclass(frozen=True, eq=False)
class TreeNodes:
    """Store the nodes of one or several decision trees as arrays of equal length m.

    A vector x goes from an inner node to its left child if ``x[feature] <= threshold``, or if
    ``x[feature]`` is NaN and ``missing_goes_left`` is True. A child has a larger number than its
    parent.

    Attributes:
        feature: Column that an inner node compares with the threshold, and 0 for a leaf, ``(m,)``.
        threshold: Threshold of an inner node; 0 for a leaf, ``(m,)``.
        left: Number of the left child; -1 for a leaf, ``(m,)``.
        right: Number of the right child; -1 for a leaf, ``(m,)``.
        missing_goes_left: Whether a vector with a missing value goes to the left child, ``(m,)``.
    """

    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    missing_goes_left: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.feature)

    @property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """Return whether each node is a leaf, ``(m,)``."""
        is_leaf: npt.NDArray[np.bool_] = self.left == NO_CHILD
        return is_leaf


def single_leaf_tree() -> TreeNodes:
    """Return a tree without splits, whose root is a leaf."""
    child = np.full(1, NO_CHILD, dtype=np.int32)
    zero = np.zeros(1, dtype=np.int32)
    return TreeNodes(zero, np.zeros(1, dtype=np.float32), child, child, np.zeros(1, dtype=bool))


def tree_nodes_of_scikit_learn(
    feature: npt.NDArray[np.integer],
    threshold: npt.NDArray[np.floating],
    left: npt.NDArray[np.integer],
    right: npt.NDArray[np.integer],
    missing_goes_left: npt.NDArray[np.integer],
    is_leaf: npt.NDArray[np.bool_],
) -> TreeNodes:
    """Convert the nodes of a tree of scikit-learn to ``TreeNodes``.

    Thresholds are rounded down to single precision. Feature and threshold of a leaf become 0, and
    its children -1.

    Args:
        feature: Column that each inner node compares, ``(m,)``.
        threshold: Thresholds in double precision, ``(m,)``.
        left: Number of each left child, ``(m,)``.
        right: Number of each right child, ``(m,)``.
        missing_goes_left: Whether missing values go to the left child, ``(m,)``.
        is_leaf: Whether each node is a leaf, ``(m,)``.
    """
    return TreeNodes(
        np.where(is_leaf, 0, feature).astype(np.int32),
        np.where(is_leaf, np.float32(0), round_thresholds_down(threshold)),
        np.where(is_leaf, NO_CHILD, left).astype(np.int32),
        np.where(is_leaf, NO_CHILD, right).astype(np.int32),
        np.where(is_leaf, False, missing_goes_left).astype(bool),
    )


def round_thresholds_down(thresholds: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """Return the largest single-precision numbers that are not above the thresholds.

    A single-precision number is above the result if and only if it is above the threshold.

    Args:
        thresholds: Thresholds in double precision, infinity included, ``(m,)``.

    Example:
        >>> round_thresholds_down(np.array([0.5, 0.1])).astype(float).round(9)
        array([0.5       , 0.09999999])
    """
    with np.errstate(over="ignore"):  # numbers beyond single precision become infinite
        rounded = thresholds.astype(np.float32)
        next_lower = np.nextafter(rounded, np.float32(-np.inf))
    return np.where(rounded.astype(np.float64) > thresholds, next_lower, rounded)


def join_tree_nodes(trees: list[TreeNodes]) -> tuple[TreeNodes, npt.NDArray[np.int32]]:
    """Return the nodes of several trees with new numbers, and the number of each root, ``(t,)``."""
    ends = np.cumsum([len(tree) for tree in trees])
    roots = np.concatenate([[0], ends[:-1]]).astype(np.int32)

    def renumber(children: npt.NDArray[np.int32], root: np.int32) -> npt.NDArray[np.int32]:
        return np.where(children == NO_CHILD, NO_CHILD, children + root).astype(np.int32)

    pairs = list(zip(trees, roots, strict=True))
    nodes = TreeNodes(
        np.concatenate([tree.feature for tree in trees]),
        np.concatenate([tree.threshold for tree in trees]),
        np.concatenate([renumber(tree.left, root) for tree, root in pairs]),
        np.concatenate([renumber(tree.right, root) for tree, root in pairs]),
        np.concatenate([tree.missing_goes_left for tree in trees]),
    )
    return nodes, roots


def leaves_of_vectors(
    vectors: npt.NDArray[np.float32], nodes: TreeNodes, roots: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Return the number of the leaf that each vector reaches in each tree, ``(n, t)``.

    In each iteration, vectors that have not reached a leaf are assigned to a child node.

    Args:
        vectors: Vectors, ``(n, d)``; NaN is a missing value.
        nodes: Nodes of t trees.
        roots: Node number of the root of each tree, ``(t,)``.

    Example:
        >>> leaves_of_vectors(np.zeros((2, 1), np.float32), single_leaf_tree(), np.zeros(1, int))
        array([[0],
               [0]])
    """
    node = np.tile(roots.astype(np.int64), len(vectors))
    moving = np.flatnonzero(nodes.left[node] != NO_CHILD)
    while len(moving):
        current = node[moving]
        values = vectors[moving // len(roots), nodes.feature[current]]
        goes_left = values <= nodes.threshold[current]
        goes_left |= np.isnan(values) & nodes.missing_goes_left[current]
        current = np.where(goes_left, nodes.left[current], nodes.right[current])
        node[moving] = current
        moving = moving[nodes.left[current] != NO_CHILD]
    return node.reshape(len(vectors), len(roots))


def tree_node_error(nodes: TreeNodes, roots: npt.NDArray[np.int32], width: int) -> str | None:
    """Return an error message if the nodes of trees from a file are invalid, and None otherwise.

    With valid nodes, each vector reaches a leaf, because a child has a larger number than its
    parent and belongs to the same tree.

    Args:
        nodes: Nodes of t trees.
        roots: Node number of the root of each tree, ``(t,)``.
        width: Width of the vectors (d).
    """
    n_nodes = len(nodes)
    lengths = {len(array) for array in vars(nodes).values()}
    if lengths != {n_nodes}:
        return f"the arrays of the nodes must have equal lengths; got {sorted(lengths)}"
    is_ascending = bool((np.diff(roots) > 0).all())
    if not len(roots) or roots[0] != 0 or not is_ascending or roots[-1] >= n_nodes:
        return f"the roots must be ascending node numbers below {n_nodes} that start with 0"
    inner = np.flatnonzero(~nodes.is_leaf)
    ends = np.append(roots[1:], n_nodes)
    end_of_tree = ends[np.searchsorted(roots, inner, side="right") - 1]
    for children in (nodes.left[inner], nodes.right[inner]):
        if (children <= inner).any() or (children >= end_of_tree).any():
            return "each child must be in the tree of its parent and have a larger node number"
    if (nodes.right[nodes.is_leaf] != NO_CHILD).any():
        return "a leaf must have no child"
    if (nodes.feature < 0).any() or (nodes.feature >= width).any():
        return f"features of the nodes must be from 0 to {width - 1}"
    return "thresholds must not be NaN" if np.isnan(nodes.threshold).any() else None
