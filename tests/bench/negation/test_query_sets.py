from itertools import permutations

import numpy as np
import pytest

from surelabel.bench.negation.query_sets import (
    NegationQuery,
    negation_query_pairs,
    sample_conjunctions,
)


@pytest.fixture(scope="module")
def is_positive(splits):
    return splits.validation.targets > 0


def test_pairs_are_those_with_enough_images_of_both_kinds(is_positive):
    rows = [row.tolist() for row in is_positive[:, :12]]
    expected = []
    for a, b in permutations(range(12), 2):
        both = sum(row[a] and row[b] for row in rows)
        only = sum(row[a] and not row[b] for row in rows)
        if both >= 2 and only >= 3:
            expected.append([a, b])
    found = negation_query_pairs(is_positive[:, :12], min_relevant=3, min_both=2)
    assert expected
    assert found.tolist() == expected


def test_a_conjunction_is_the_product_of_its_literals():
    y = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]], bool)
    p = np.array([[0.5, 0.2, 0.1], [0.9, 0.4, 0.3], [1.0, 1.0, 0.0]])
    conjunction = NegationQuery((0, 1), (2,))
    assert conjunction.matches(y).tolist() == [True, False, False]
    assert conjunction.probability(p).tolist() == pytest.approx(
        [0.5 * 0.2 * 0.9, 0.9 * 0.4 * 0.7, 1.0]
    )


@pytest.mark.parametrize("with_unwanted", [False, True])
def test_sampled_conjunctions_have_their_length_and_match_an_image(is_positive, with_unwanted):
    conjunctions = sample_conjunctions(is_positive, 3, 40, with_unwanted=with_unwanted, seed=2)
    assert len(set(conjunctions)) == len(conjunctions) > 10
    for conjunction in conjunctions:
        labels = (*conjunction.wanted, *conjunction.unwanted)
        assert len(set(labels)) == 3
        assert conjunction.wanted
        assert bool(conjunction.unwanted) == with_unwanted
        assert conjunction.matches(is_positive).any()
    again = sample_conjunctions(is_positive, 3, 40, with_unwanted=with_unwanted, seed=2)
    assert again == conjunctions


def test_no_conjunction_is_longer_than_the_labels_of_an_image(is_positive):
    length = int(is_positive.sum(axis=1).max()) + 1
    assert sample_conjunctions(is_positive, length, 5, with_unwanted=False) == []
