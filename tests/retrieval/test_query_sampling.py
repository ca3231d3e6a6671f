"""Which conjunctions there are, and fair draws among them."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest

from surelabel.retrieval.literal_scores import compute_literal_scores
from surelabel.retrieval.query_sampling import (
    fulfilled_queries_without_sampling,
    number_of_queries_for_query_sampling,
    query_sampling_label_sets,
    query_sampling_shape,
    query_sampling_shapes,
    sample_queries,
    walk_fulfilled_queries_without_sampling,
)

random = np.random.default_rng(0)
TARGETS = random.random((70, 7)) < 0.25
IMAGES = compute_literal_scores(random.standard_normal((70, 7)), TARGETS)


def by_hand(shape):
    """Every fulfilled query of a shape."""
    found = set()
    for columns in combinations(range(7), sum(shape)):
        for signs in product((1, -1), repeat=sum(shape)):
            query = tuple(zip(columns, signs, strict=True))
            holds = np.all([TARGETS[:, j] == (sign > 0) for j, sign in query], axis=0)
            if query_sampling_shape(query) == shape and holds.any():
                found.add(query)
    return found


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_shapes_add_up_to_all_queries(length):
    number = sum(
        number_of_queries_for_query_sampling(9, shape) for shape in query_sampling_shapes(length)
    )
    assert number == sum(1 for _ in combinations(range(9), length)) * (2**length - 1)
    assert all(
        wanted >= 1 and wanted + unwanted == length
        for wanted, unwanted in query_sampling_shapes(length)
    )


def test_there_is_no_query_of_more_labels_than_there_are():
    assert (
        number_of_queries_for_query_sampling(2, (1, 2))
        == number_of_queries_for_query_sampling(2, (3, 0))
        == 0
    )


@pytest.mark.parametrize("wanted", [{(1, 0)}, {(2, 1)}, {(1, 2), (3, 0)}, {(1, 3), (2, 2), (4, 0)}])
def test_the_walk_meets_every_fulfilled_query_once(wanted):
    met = [query for query, _, _ in walk_fulfilled_queries_without_sampling(IMAGES, wanted)]
    assert len(met) == len(set(met))
    assert set(met) == set().union(*(by_hand(shape) for shape in wanted))


def test_the_walk_scores_as_each_query_is_scored_alone():
    for query, scores, relevant in walk_fulfilled_queries_without_sampling(
        IMAGES, {(2, 1), (1, 2)}
    ):
        np.testing.assert_array_equal(scores, IMAGES.query_scores(query))
        np.testing.assert_array_equal(relevant, IMAGES.relevant_images(query))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_sets_that_occur_are_found_by_looking_into_every_image(size):
    expected = {s for row in TARGETS for s in combinations(np.flatnonzero(row).tolist(), size)}
    found = query_sampling_label_sets(TARGETS.T, size)
    assert len(found) == len(expected)
    assert {tuple(columns) for columns in found.tolist()} == expected


def test_no_set_occurs_where_nothing_is_present():
    assert query_sampling_label_sets(np.zeros((4, 9), bool), 2).shape == (0, 2)


@pytest.mark.parametrize("shape", [(1, 0), (1, 2), (3, 1)])
def test_all_queries_around_the_sets_are_the_fulfilled_ones(shape):
    found = fulfilled_queries_without_sampling(
        IMAGES, query_sampling_label_sets(TARGETS.T, shape[0]), shape[1]
    )
    assert len(found) == len(set(found))
    assert set(found) == by_hand(shape)


def test_every_fulfilled_query_is_drawn_equally_often():
    expected, sets = by_hand((3, 1)), query_sampling_label_sets(TARGETS.T, 3)
    generator = np.random.default_rng(1)
    kept, drawn = sample_queries(IMAGES, sets, 1, sample_size=6000, generator=generator)
    counts = Counter(kept)
    assert counts.keys() == expected
    mean = 6000 / len(expected)
    chi2 = sum((n - mean) ** 2 / mean for n in counts.values())
    assert abs(chi2 - len(expected)) < 4 * np.sqrt(2 * len(expected))
    share = len(expected) / (len(sets) * 4)
    assert len(kept) / drawn == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / drawn))


def test_draws_end_where_nothing_is_fulfilled():
    full = compute_literal_scores(np.zeros((3, 4)), np.ones((3, 4)))
    generator = np.random.default_rng(0)
    kept, drawn = sample_queries(full, np.array([[0], [1]]), 2, sample_size=3, generator=generator)
    assert (kept, drawn) == ([], 300)
