import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.records.relevance import Relevance
from surelabel.retrieval.caption_retrieval.query_metrics import (
    query_average_precision_at_r,
    query_r_precision,
)
from surelabel.retrieval.caption_retrieval.relevant_items import (
    NOT_RANKED,
    relevant_captions_of_images,
    relevant_items_of_lists,
)
from surelabel.retrieval.caption_retrieval.relevant_ranks import compute_relevant_ranks
from surelabel.retrieval.caption_retrieval.score_blocks import ROWS_PER_BLOCK


@pytest.mark.parametrize("levels", [3, 40, 10**6])
def test_ranks_are_the_positions_of_a_stable_sort(levels):
    random = np.random.default_rng(levels)
    scores = random.integers(levels, size=(ROWS_PER_BLOCK + 40, 30)).astype(np.float32)
    lists = [random.permutation(30)[: random.integers(12)] for _ in scores]
    ranks = compute_relevant_ranks(scores, relevant_items_of_lists(lists))
    expected = [
        (row, sorted(range(30), key=lambda item: -scores[row, item]).index(column) + 1)
        for row, columns in enumerate(lists)
        for column in columns
    ]
    assert ranks.ranks.tolist() == [rank for _, rank in expected]
    assert ranks.queries[ranks.positions].tolist() == [row for row, _ in expected]
    assert ranks.n_left_out == sum(not len(columns) for columns in lists)


def test_a_transposed_matrix_needs_no_copy_and_has_the_same_ranks():
    random = np.random.default_rng(0)
    scores = random.normal(size=(20, 50)).astype(np.float32)
    relevant = relevant_items_of_lists([[row % 20] for row in range(50)])
    ranks = compute_relevant_ranks(scores.T, relevant)
    np.testing.assert_array_equal(
        ranks.ranks, compute_relevant_ranks(scores.T.copy(), relevant).ranks
    )


def test_a_threshold_keeps_own_items_and_leaves_queries_without_items_out():
    relevance = Relevance([0, 1, 1], [1, 0, 2], [0.4, 0.6, 1.0])
    relevant = relevant_captions_of_images([2, 0, 0], 3, relevance)
    ranks = compute_relevant_ranks(np.array([[3.0, 2.0, 1.0]] * 3), relevant)
    assert ranks.ranks.tolist() == [2, 3, 1, 3, 1]
    own, half, strict = ranks.own(), ranks.at_least(0.5), ranks.at_least(1)
    assert (own.queries.tolist(), own.ranks.tolist(), own.n_left_out) == ([0, 2], [2, 3, 1], 1)
    assert (half.queries.tolist(), half.relevant_counts.tolist()) == ([0, 1, 2], [2, 2, 1])
    assert strict.relevant_counts.tolist() == [2, 1, 1]
    of_two = ranks.of_queries(np.array([1, 2]))
    assert (of_two.ranks.tolist(), of_two.n_left_out) == ([1, 3, 1], 1)
    with pytest.raises(InputError, match=r"in \(0, 1\]; got 0"):
        ranks.at_least(0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_refused(value):
    scores = np.zeros((2, 3))
    scores[1, 2] = value
    with pytest.raises(InputError, match="scores must be finite; got NaN or infinite"):
        compute_relevant_ranks(scores, relevant_items_of_lists([[0], [0]]))


def test_scores_of_other_queries_or_items_are_refused():
    with pytest.raises(InputError, match=r"one entry per row of scores, 2; got 1\. Transpose"):
        compute_relevant_ranks(np.zeros((2, 3)), relevant_items_of_lists([[0]]))
    with pytest.raises(InputError, match="from 0 to 2; got 3"):
        compute_relevant_ranks(np.zeros((1, 3)), relevant_items_of_lists([[3]]))


def test_a_relevant_item_outside_the_collection_counts_and_is_never_found():
    scores = np.array([[3.0, 2.0, 1.0]])
    ranks = compute_relevant_ranks(scores, relevant_items_of_lists([[0, NOT_RANKED, NOT_RANKED]]))
    assert ranks.ranks.tolist() == [1, 4, 4]
    assert query_r_precision(ranks).tolist() == pytest.approx([1 / 3])
    assert query_average_precision_at_r(ranks).tolist() == pytest.approx([1 / 3])
    many = compute_relevant_ranks(
        np.arange(9.0)[None], relevant_items_of_lists([[0, 1, 2, NOT_RANKED, 8, 7, 6]])
    )
    assert many.ranks.tolist() == [9, 8, 7, 10, 1, 2, 3]
