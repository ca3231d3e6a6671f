"""Which conjunctions there are, and fair draws among them."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest

from surelabel.retrieval.judged import judged
from surelabel.retrieval.queries import (
    all_around,
    drawn_around,
    every_query,
    number_of_shape,
    sets_that_occur,
    shape_of,
    shapes,
)

random = np.random.default_rng(0)
TARGETS = random.random((70, 7)) < 0.25
PICTURES = judged(random.standard_normal((70, 7)), TARGETS)


def by_hand(shape):
    """Every fulfilled query of a shape."""
    found = set()
    for columns in combinations(range(7), sum(shape)):
        for signs in product((1, -1), repeat=sum(shape)):
            query = tuple(zip(columns, signs, strict=True))
            holds = np.all([TARGETS[:, j] == (sign > 0) for j, sign in query], axis=0)
            if shape_of(query) == shape and holds.any():
                found.add(query)
    return found


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_shapes_add_up_to_all_queries(length):
    number = sum(number_of_shape(9, shape) for shape in shapes(length))
    assert number == sum(1 for _ in combinations(range(9), length)) * (2**length - 1)
    assert all(wanted >= 1 and wanted + unwanted == length for wanted, unwanted in shapes(length))


def test_there_is_no_query_of_more_labels_than_there_are():
    assert number_of_shape(2, (1, 2)) == number_of_shape(2, (3, 0)) == 0


@pytest.mark.parametrize("wanted", [{(1, 0)}, {(2, 1)}, {(1, 2), (3, 0)}, {(1, 3), (2, 2), (4, 0)}])
def test_the_walk_meets_every_fulfilled_query_once(wanted):
    met = [query for query, _, _ in every_query(PICTURES, wanted)]
    assert len(met) == len(set(met))
    assert set(met) == set().union(*(by_hand(shape) for shape in wanted))


def test_the_walk_scores_as_each_query_is_scored_alone():
    for query, scores, relevant in every_query(PICTURES, {(2, 1), (1, 2)}):
        np.testing.assert_array_equal(scores, PICTURES.scores(query))
        np.testing.assert_array_equal(relevant, PICTURES.relevant(query))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_sets_that_occur_are_found_by_looking_into_every_picture(size):
    expected = {s for row in TARGETS for s in combinations(np.flatnonzero(row).tolist(), size)}
    found = sets_that_occur(TARGETS.T, size)
    assert len(found) == len(expected)
    assert {tuple(columns) for columns in found.tolist()} == expected


def test_no_set_occurs_where_nothing_is_present():
    assert sets_that_occur(np.zeros((4, 9), bool), 2).shape == (0, 2)


@pytest.mark.parametrize("shape", [(1, 0), (1, 2), (3, 1)])
def test_all_queries_around_the_sets_are_the_fulfilled_ones(shape):
    found = all_around(PICTURES, sets_that_occur(TARGETS.T, shape[0]), shape[1])
    assert len(found) == len(set(found))
    assert set(found) == by_hand(shape)


def test_every_fulfilled_query_is_drawn_equally_often():
    expected, sets = by_hand((3, 1)), sets_that_occur(TARGETS.T, 3)
    generator = np.random.default_rng(1)
    kept, drawn = drawn_around(PICTURES, sets, 1, sample=6000, generator=generator)
    counts = Counter(kept)
    assert counts.keys() == expected
    mean = 6000 / len(expected)
    chi2 = sum((n - mean) ** 2 / mean for n in counts.values())
    assert abs(chi2 - len(expected)) < 4 * np.sqrt(2 * len(expected))
    share = len(expected) / (len(sets) * 4)
    assert len(kept) / drawn == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / drawn))


def test_draws_end_where_nothing_is_fulfilled():
    full = judged(np.zeros((3, 4)), np.ones((3, 4)))
    generator = np.random.default_rng(0)
    kept, drawn = drawn_around(full, np.array([[0], [1]]), 2, sample=3, generator=generator)
    assert (kept, drawn) == ([], 300)
