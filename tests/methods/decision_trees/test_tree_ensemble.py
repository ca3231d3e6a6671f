import numpy as np
import pytest
import torch

from surelabel.errors import NotFitted
from surelabel.methods.decision_trees import tree_ensemble
from surelabel.methods.decision_trees.tree_ensemble import ALL_LABELS, TreeEnsemble
from surelabel.methods.decision_trees.tree_nodes import TreeNodes, single_leaf_tree

RANDOM = np.random.default_rng(0)
X = torch.from_numpy(RANDOM.normal(size=(40, 3)).astype(np.float32))


def stump(feature, threshold):
    """Return a tree with one split: x[feature] <= threshold goes to the left leaf."""
    return TreeNodes(
        np.array([feature, 0, 0], dtype=np.int32),
        np.array([threshold, 0, 0], dtype=np.float32),
        np.array([1, -1, -1], dtype=np.int32),
        np.array([2, -1, -1], dtype=np.int32),
        np.zeros(3, dtype=bool),
    )


TREES = [stump(0, 0.0), single_leaf_tree(), stump(1, 0.5), stump(2, -0.5), stump(0, 1.0)]


def ensemble(labels):
    """Return trees with one value per leaf, or with two values if the trees serve both labels."""
    trees = TreeEnsemble(width=3, n_labels=2)
    n_values = 2 if labels[0] == ALL_LABELS else 1
    random = np.random.default_rng(1)
    values = [random.normal(size=((len(tree) + 1) // 2, n_values)) for tree in TREES]
    trees.set_trees(TREES, values, labels)
    return trees, values


@pytest.mark.parametrize("entries", [2**20, 7])
@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1], [0, 1, 1, 1, 1], [ALL_LABELS] * 5])
def test_sums_over_leaves_are_those_of_loops(labels, entries, monkeypatch):
    monkeypatch.setattr(tree_ensemble, "ENTRIES_PER_BLOCK", entries)
    trees, values = ensemble(labels)
    expected = np.zeros((40, 2))
    for row, x in enumerate(X.numpy()):
        for tree, leaves, label in zip(TREES, values, labels, strict=True):
            is_right = len(tree) > 1 and x[tree.feature[0]] > tree.threshold[0]
            columns = slice(None) if label == ALL_LABELS else label
            expected[row, columns] += leaves[int(is_right)].squeeze()
    np.testing.assert_allclose(trees(X), expected, atol=1e-6)
    assert trees.n_trees.tolist() == [labels.count(0) or 5, labels.count(1) or 5]


def test_without_trees_nothing_is_computed():
    with pytest.raises(NotFitted, match="must be fitted"):
        TreeEnsemble(3, 2)(X)


@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1], [ALL_LABELS] * 5])
def test_another_ensemble_loads_the_state(labels):
    trees, _ = ensemble(labels)
    other = TreeEnsemble(3, 2)
    other.load_state_dict(trees.state_dict())
    assert np.array_equal(other(X), trees(X))
    other.load_state_dict(TreeEnsemble(3, 2).state_dict())
    assert not len(other.roots)


def changed(name, change, labels=(0, 0, 0, 1, 1)):
    state = ensemble(list(labels))[0].state_dict()
    state[name] = change(state[name].clone())
    return state


def put(position, value):
    def change(tensor):
        tensor[position] = value
        return tensor

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("left", put(0, -7), "each child must be in the tree of its parent"),
        ("feature", put(0, 3), "features of the nodes must be from 0 to 2"),
        ("threshold", put(0, float("nan")), "thresholds must not be NaN"),
        ("values", put(0, float("inf")), "values of leaves must be finite"),
        (
            "values",
            lambda tensor: tensor[:-1],
            r"values must have the shape \(9, 1\); got \(8, 1\)",
        ),
        ("values", lambda tensor: tensor.expand(-1, 2), r"values must have the shape \(9, 1\)"),
        ("right", lambda tensor: tensor[:-1], "arrays of the nodes must have equal lengths"),
        (
            "right",
            lambda tensor: tensor.long(),
            "right must have ndim=1 and dtype=torch.int32; got",
        ),
        ("roots", lambda tensor: tensor[:-1], "roots and labels of the trees must have equal"),
        ("roots", put(1, 0), "roots must be ascending"),
        ("labels", put(0, 1), "labels of the trees must be ascending and cover 2 labels"),
        ("labels", put(4, 2), "labels of the trees must be ascending and cover 2 labels"),
        ("labels", lambda tensor: 0 * tensor, "must be ascending and cover 2 labels"),
        ("labels", put(0, -1), "must be ascending and cover 2 labels"),
    ],
)
def test_damaged_arrays_are_refused_and_change_nothing(name, change, message):
    trees, _ = ensemble([0, 1, 1, 1, 1])
    before = trees(X)
    with pytest.raises(RuntimeError, match=f"The decision trees are damaged: .*{message}"):
        trees.load_state_dict(changed(name, change))
    assert np.array_equal(trees(X), before)


def test_values_of_all_labels_need_a_column_per_label():
    state = changed("values", lambda tensor: tensor[:, :1], [ALL_LABELS] * 5)
    with pytest.raises(RuntimeError, match=r"values must have the shape \(9, 2\); got \(9, 1\)"):
        TreeEnsemble(3, 2).load_state_dict(state)


def test_a_missing_array_is_named():
    state = ensemble([0, 0, 0, 1, 1])[0].state_dict()
    del state["left"]
    with pytest.raises(RuntimeError, match=r"Missing key.*left"):
        TreeEnsemble(3, 2).load_state_dict(state)
