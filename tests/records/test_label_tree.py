from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from surelabel.errors import DataError, InputError
from surelabel.records import LabelTree
from surelabel.records.label_tree import (
    NO_PARENT,
    extend_targets,
    isotonic_logits,
    order_of_descent,
)

TREE = LabelTree({"dog": "animal", "cat": "animal", "puppy": "dog", "car": "vehicle"})
NAMES = ["puppy", "animal", "dog", "cat", "car", "vehicle", "sky"]
COLUMNS = [2, NO_PARENT, 1, 1, 5, NO_PARENT, NO_PARENT]
UNKNOWN = float("nan")


@st.composite
def trees(draw, max_size=6):
    """Columns of parents; the labels are in a random order."""
    size = draw(st.integers(1, max_size))
    parents = [draw(st.integers(NO_PARENT, column - 1)) for column in range(size)]
    place = draw(st.permutations(range(size)))
    shuffled = np.empty(size, np.intp)
    for column, parent in enumerate(parents):
        shuffled[place[column]] = NO_PARENT if parent == NO_PARENT else place[parent]
    return shuffled


def nearest_logits(logits, parents):
    """Try all sets of edges with equal logits, and return the nearest feasible solution."""
    edges = [(child, parent) for child, parent in enumerate(parents) if parent != NO_PARENT]
    best = None
    for chosen in product([False, True], repeat=len(edges)):
        block = list(range(len(logits)))
        for (child, parent), is_equal in zip(edges, chosen, strict=True):
            if is_equal:
                block = [block[parent] if b == block[child] else b for b in block]
        values = np.array([np.mean(logits[np.equal(block, b)]) for b in block])
        if all(values[parent] >= values[child] - 1e-9 for child, parent in edges):
            distance = np.sum((values - logits) ** 2)
            if best is None or distance < best[0]:
                best = distance, values
    return best[1]


@settings(max_examples=150)
@given(parents=trees(), data=st.data())
def test_the_logits_are_the_nearest_ones_that_satisfy_the_tree(parents, data):
    row = st.lists(st.integers(-8, 8), min_size=len(parents), max_size=len(parents))
    logits = np.array(data.draw(st.lists(row, min_size=1, max_size=3)), dtype=float)
    found = isotonic_logits(logits, parents)
    expected = [nearest_logits(values, parents) for values in logits]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@settings(max_examples=50)
@given(parents=trees(max_size=40), seed=st.integers(0, 1000))
def test_no_label_exceeds_its_parent_and_a_second_projection_changes_nothing(parents, seed):
    logits = np.random.default_rng(seed).normal(size=(5, len(parents))) * 10
    found = isotonic_logits(logits, parents)
    children = np.flatnonzero(parents != NO_PARENT)
    assert (found[:, parents[children]] >= found[:, children]).all()
    np.testing.assert_allclose(isotonic_logits(found, parents), found, atol=1e-9)
    assert np.isclose(found.sum(), logits.sum())  # blocks are means


def test_a_chain_is_the_isotonic_regression_of_scikit_learn():
    logits = np.random.default_rng(0).normal(size=(20, 15))
    parents = np.arange(15) - 1
    expected = [
        IsotonicRegression(increasing=False).fit_transform(np.arange(15), z) for z in logits
    ]
    np.testing.assert_allclose(isotonic_logits(logits, parents), expected, atol=1e-12)


def test_logits_that_satisfy_the_tree_are_unchanged():
    logits = np.array([[0.1, 0.7, 0.3, 0.7, -1.0, 2.0, 9.0]])
    assert isotonic_logits(logits, np.array(COLUMNS)).tolist() == logits.tolist()


def test_columns_of_parents_follow_the_labels():
    assert TREE.parent_columns(NAMES).tolist() == COLUMNS
    assert TREE.ancestors("puppy") == ["dog", "animal"]
    order = order_of_descent(np.array(COLUMNS))
    assert sorted(order) == list(range(7))
    assert order.index(1) < order.index(2) < order.index(0)


def test_a_label_that_is_not_known_is_refused():
    with pytest.raises(InputError, match=r"recognizer; got 2 other labels, such as 'animal'"):
        TREE.parent_columns([name for name in NAMES if name not in ("animal", "cat")])


@pytest.mark.parametrize(
    "parents", [{"a": "a"}, {"a": "b", "b": "a"}, {"x": "a", "a": "b", "b": "a"}]
)
def test_a_label_that_is_its_own_ancestor_is_refused(parents):
    with pytest.raises(InputError, match="must not be its own ancestor; got"):
        LabelTree(parents)


def test_targets_follow_from_the_tree():
    targets = np.full((4, 7), UNKNOWN)
    targets[0, 0] = 1  # puppy
    targets[1, 1] = 0  # animal
    targets[2, [2, 3]] = 0  # dog and cat
    targets[3, 0] = 0.4
    extended = extend_targets(targets, np.array(COLUMNS))
    expected = np.full((4, 7), UNKNOWN)
    expected[0, [0, 1, 2]] = 1
    expected[1, [0, 1, 2, 3]] = 0
    expected[2, [0, 2, 3]] = 0  # the animal remains unknown
    expected[3, 0] = 0.4
    np.testing.assert_array_equal(extended, expected)
    assert np.isnan(targets[0, 1])  # the given targets do not change


def test_a_positive_label_with_a_negative_ancestor_is_refused():
    targets = np.full((2, 7), UNKNOWN)
    targets[1, [0, 1]] = 1, 0
    with pytest.raises(DataError, match="got both in row 1: column 2 is positive, and its parent"):
        extend_targets(targets, np.array(COLUMNS))
