from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import InputError
from surelabel.evaluation import measure_one_positive_bias


def by_hand(scores, targets, main, known):
    """The mean over all ways to break ties, one image and order of the labels at a time."""
    found = {True: 0.0, False: 0.0}
    asked = {True: 0, False: 0}
    for row, there, first, told in zip(scores, targets, main, known, strict=True):
        labels = [j for j in range(len(row)) if told[j]]
        present = [j for j in labels if there[j]]
        orders = list(permutations(labels))
        for j in present:
            hits = 0
            for order in orders:
                ranked = sorted(order, key=lambda a: -row[a])
                hits += j in ranked[: len(present)]
            found[j == first] += hits / len(orders)
            asked[j == first] += 1
    return tuple(found[k] / asked[k] if asked[k] else np.nan for k in (True, False))


rows = st.lists(
    st.tuples(
        st.lists(st.integers(0, 2), min_size=4, max_size=4),
        st.lists(st.booleans(), min_size=4, max_size=4),
        st.integers(-1, 3),
        st.lists(st.booleans(), min_size=4, max_size=4),
    ),
    min_size=1,
    max_size=4,
)


@given(rows)
def test_equals_the_mean_over_all_ways_to_break_ties(drawn):
    scores, targets, main, known = (list(column) for column in zip(*drawn, strict=True))
    got = measure_one_positive_bias(scores, np.array(targets, float), main, known)
    np.testing.assert_allclose(
        (got.main_recall, got.other_recall), by_hand(scores, targets, main, known)
    )


def test_a_perfect_order_finds_everything():
    y = np.array([[1, 0, 1, 0], [0, 1, 1, 1]])
    found = measure_one_positive_bias(y, y, [0, 3])
    assert (found.main_recall, found.other_recall, found.recall_gap) == (1, 1, 0)


def test_finding_main_objects_alone_is_the_bias_itself():
    y = np.array([[1, 0, 1, 0], [0, 1, 1, 1]])
    scores = [[1.0, 0.5, 0.0, 0.5], [0.9, 0.8, 0.7, 1.0]]
    found = measure_one_positive_bias(scores, y, [0, 3])
    assert found.main_recall == 1
    assert found.other_recall == pytest.approx(1 / 3)
    assert found.recall_gap == pytest.approx(2 / 3)


def test_a_main_object_that_is_hidden_is_not_asked_for():
    assert np.isnan(measure_one_positive_bias([[0.1, 0.9]], [[0, 1]], [0]).main_recall)
    assert np.isnan(measure_one_positive_bias([[0.1, 0.9]], [[0, 1]], [-1]).main_recall)


def test_bad_input_is_refused():
    with pytest.raises(InputError, match=r"main must contain column indices from 0 to 1, or -1"):
        measure_one_positive_bias([[0.1, 0.9]], [[0, 1]], [2])
    with pytest.raises(InputError, match="a whole number for each of 1 image"):
        measure_one_positive_bias([[0.1, 0.9]], [[0, 1]], [0, 1])
    with pytest.raises(InputError, match="a whole number for each of 1 image"):
        measure_one_positive_bias([[0.1, 0.9]], [[0, 1]], [0.5])
    with pytest.raises(InputError, match="scores must be finite"):
        measure_one_positive_bias([[np.nan, 0.9]], [[0, 1]], [1])
