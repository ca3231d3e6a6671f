from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from surelabel.calibration import isotonic_logits
from surelabel.records import NO_PARENT

COLUMNS = [2, NO_PARENT, 1, 1, 5, NO_PARENT, NO_PARENT]


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
