import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from surelabel.methods.decision_trees.tree_limits import (
    BYTES_PER_NODE,
    BYTES_PER_VALUE,
    MAX_TREE_BYTES,
    limit_boosted_trees,
    limit_trees,
    min_leaf_images_of_fit,
)


def bytes_of(n_leaves, n_values):
    return (2 * n_leaves - 1) * BYTES_PER_NODE + n_leaves * n_values * BYTES_PER_VALUE


@given(st.integers(1, 10**8), st.integers(1, 2000), st.integers(1, 10_000), st.integers(1, 1000))
@example(10**8, 2000, 1, 1)
@example(10**8, 1, 3, 1)
def test_a_forest_of_the_largest_trees_has_at_most_50_megabytes(n_images, n_values, trees, leaf):
    n_trees, min_leaf = limit_trees(n_images, n_values, trees, leaf)
    assert 1 <= n_trees <= trees
    assert min_leaf >= leaf
    if n_images >= min_leaf:  # else each tree has one leaf
        assert n_trees * bytes_of(n_images // min_leaf, n_values) <= MAX_TREE_BYTES
    n_bytes = n_images * (2 * BYTES_PER_NODE + n_values * BYTES_PER_VALUE)
    if trees * n_bytes <= MAX_TREE_BYTES * leaf:
        assert (n_trees, min_leaf) == (trees, leaf)


def test_the_number_of_trees_and_the_leaves_share_the_reduction():
    n_trees, min_leaf = limit_trees(1_000_000, 8, 400, 2)
    excess = 400 * 500_000 * (34 + 32) / MAX_TREE_BYTES
    assert n_trees == pytest.approx(400 / excess**0.5, abs=1)
    assert min_leaf == pytest.approx(2 * excess**0.5, rel=0.1)


@given(st.integers(1, 10**5), st.integers(2, 64), st.integers(1, 1000))
def test_boosted_trees_of_all_labels_have_at_most_50_megabytes(n_labels, max_leaves, trees):
    n_trees = limit_boosted_trees(n_labels, max_leaves, trees)
    assert 1 <= n_trees <= trees
    assert n_trees == 1 or n_labels * n_trees * bytes_of(max_leaves, 1) <= MAX_TREE_BYTES
    if n_trees < trees:
        n_bytes = n_labels * (n_trees + 1) * max_leaves * (2 * BYTES_PER_NODE + BYTES_PER_VALUE)
        assert n_bytes > MAX_TREE_BYTES


def test_a_leaf_has_at_most_a_tenth_of_the_images():
    cases = {5: 1, 10: 1, 39: 3, 150: 15, 200: 20, 10_000: 20}
    assert {n: min_leaf_images_of_fit(20, n) for n in cases} == cases
