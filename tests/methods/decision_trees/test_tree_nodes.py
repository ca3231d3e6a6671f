from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.tree import DecisionTreeRegressor

from surelabel.methods.decision_trees.tree_nodes import (
    TreeNodes,
    join_tree_nodes,
    leaves_of_vectors,
    round_thresholds_down,
    single_leaf_tree,
    tree_node_error,
    tree_nodes_of_scikit_learn,
)

RANDOM = np.random.default_rng(0)


def nodes_of(tree):
    return tree_nodes_of_scikit_learn(
        tree.feature,
        tree.threshold,
        tree.children_left,
        tree.children_right,
        tree.missing_go_to_left,
        tree.children_left < 0,
    )


def fitted_trees(count, width=4):
    """Return trees of scikit-learn, fitted on vectors with missing values."""
    trees = []
    for seed in range(count):
        x = RANDOM.normal(size=(60, width)).astype(np.float32)
        x[RANDOM.random(x.shape) < 0.1] = np.nan
        tree = DecisionTreeRegressor(max_depth=seed + 1, random_state=seed)
        trees.append(tree.fit(x, RANDOM.random(60)).tree_)
    return trees


def leaf_by_loop(x, nodes, root):
    node = root
    while nodes.left[node] >= 0:
        value = x[nodes.feature[node]]
        is_left = (
            nodes.missing_goes_left[node] if np.isnan(value) else value <= nodes.threshold[node]
        )
        node = nodes.left[node] if is_left else nodes.right[node]
    return node


def test_leaves_are_those_of_a_loop_and_of_scikit_learn():
    trees = fitted_trees(6)
    x = RANDOM.normal(size=(50, 4)).astype(np.float32)
    x[RANDOM.random(x.shape) < 0.2] = np.nan
    nodes, roots = join_tree_nodes([nodes_of(tree) for tree in trees])
    leaves = leaves_of_vectors(x, nodes, roots)
    assert leaves.tolist() == [[leaf_by_loop(row, nodes, root) for root in roots] for row in x]
    for column, (tree, root) in enumerate(zip(trees, roots, strict=True)):
        assert np.array_equal(leaves[:, column] - root, tree.apply(x))


def test_a_tree_without_splits_sends_all_vectors_to_its_root():
    nodes, roots = join_tree_nodes([single_leaf_tree(), single_leaf_tree()])
    leaves = leaves_of_vectors(np.full((3, 2), np.nan, dtype=np.float32), nodes, roots)
    assert leaves.tolist() == [[0, 1]] * 3
    assert leaves_of_vectors(np.empty((0, 2), np.float32), nodes, roots).shape == (0, 2)


@given(
    arrays(np.float32, 8, elements=st.floats(width=32, allow_nan=False)),
    arrays(np.float64, 8, elements=st.floats(allow_nan=False)),
)
def test_comparisons_with_rounded_thresholds_are_those_in_double_precision(values, thresholds):
    thresholds[:4] = values[:4].astype(np.float64) + thresholds[:4] * 1e-12  # very close
    thresholds = np.nan_to_num(thresholds, posinf=np.inf, neginf=-np.inf)
    rounded = round_thresholds_down(thresholds)
    assert rounded.dtype == np.float32
    assert np.array_equal(values <= rounded, values.astype(np.float64) <= thresholds)


def two_trees():
    return join_tree_nodes([nodes_of(tree) for tree in fitted_trees(2)])


def test_the_nodes_of_fitted_trees_are_valid():
    nodes, roots = two_trees()
    assert tree_node_error(nodes, roots, 4) is None


@pytest.mark.parametrize(
    ("array", "position", "value", "message"),
    [
        ("left", 0, 0, "each child must be in the tree of its parent"),
        ("right", 0, -5, "each child must be in the tree of its parent"),
        ("left", 0, 2**30, "each child must be in the tree of its parent"),
        ("right", 0, -1, "each child must be in the tree of its parent"),
        ("left", 0, -2, "each child must be in the tree of its parent"),
        ("right", 2, 3, "a leaf must have no child"),
        ("feature", 0, 4, "features of the nodes must be from 0 to 3"),
        ("feature", -1, -1, "features of the nodes must be from 0 to 3"),
        ("threshold", 0, np.nan, "thresholds must not be NaN"),
    ],
)
def test_a_changed_node_is_refused(array, position, value, message):
    nodes, roots = join_tree_nodes([nodes_of(fitted_trees(1)[0]), single_leaf_tree()])
    assert (nodes.left[0], nodes.left[2]) == (1, -1)
    changed = getattr(nodes, array).copy()
    changed[position] = value
    assert message in tree_node_error(replace(nodes, **{array: changed}), roots, 4)


def test_a_child_in_another_tree_is_refused():
    nodes, roots = two_trees()
    changed = nodes.right.copy()
    changed[0] = roots[1] + 1
    assert "in the tree of its parent" in tree_node_error(replace(nodes, right=changed), roots, 4)


@pytest.mark.parametrize("roots", [[], [1], [0, 0], [0, 10**6], [0, -1]])
def test_roots_that_are_no_ascending_nodes_are_refused(roots):
    nodes, _ = two_trees()
    assert "roots must be ascending" in tree_node_error(nodes, np.array(roots, np.int32), 4)


def test_arrays_of_different_lengths_are_refused():
    nodes, roots = two_trees()
    shorter = replace(nodes, threshold=nodes.threshold[:-1])
    assert "equal lengths" in tree_node_error(shorter, roots, 4)


@given(st.data())
def test_vectors_reach_a_leaf_of_all_nodes_that_are_valid(data):
    size = data.draw(st.integers(1, 12))
    child = arrays(np.int32, size, elements=st.integers(-1, size))
    nodes = TreeNodes(
        data.draw(arrays(np.int32, size, elements=st.integers(0, 1))),
        data.draw(arrays(np.float32, size, elements=st.floats(-1, 1, width=32))),
        data.draw(child),
        data.draw(child),
        data.draw(arrays(bool, size)),
    )
    roots = np.zeros(1, dtype=np.int32)
    if tree_node_error(nodes, roots, 2) is None:
        leaves = leaves_of_vectors(np.float32([[0.0, np.nan], [0.5, -0.5]]), nodes, roots)
        assert (nodes.left[leaves] == -1).all()
