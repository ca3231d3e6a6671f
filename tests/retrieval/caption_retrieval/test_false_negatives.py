import math

import numpy as np

from surelabel.records.relevance import Relevance
from surelabel.retrieval.caption_retrieval.false_negatives import count_false_negatives
from surelabel.retrieval.caption_retrieval.relevant_items import relevant_captions_of_images
from surelabel.retrieval.caption_retrieval.relevant_ranks import compute_relevant_ranks

RELEVANCE = Relevance([0, 0, 1, 2], [1, 2, 0, 0], [1.0, 1.0, 1.0, 0.5])


def ranks_of(scores):
    return compute_relevant_ranks(
        np.array(scores, float), relevant_captions_of_images([0, 1, 2], 3, RELEVANCE)
    ).at_least(1)


def test_other_relevant_items_below_rank_r_are_missed():
    scores = [
        [1, 3, 2],  # captions 1 and 2 are relevant, all three of three: none can be missed
        [0, 5, 4],  # caption 0 is relevant and the last of three, but R is 2
        [2, 1, 0],  # grade 0.5 is below the threshold
    ]
    found = count_false_negatives(ranks_of(scores))
    assert (found.relevant_items, found.missed_items) == (3, 1)
    assert found.rate == 1 / 3


def test_a_perfect_ranking_misses_nothing():
    assert count_false_negatives(ranks_of([[3, 2, 1], [2, 1, 0], [0, 0, 9]])).rate == 0


def test_own_items_are_not_counted():
    own = ranks_of([[1, 3, 2], [0, 5, 4], [2, 1, 0]]).own()
    found = count_false_negatives(own)
    assert found.relevant_items == 0
    assert math.isnan(found.rate)
