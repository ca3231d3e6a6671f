import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.retrieval.caption_retrieval.score_blocks import ROWS_PER_BLOCK
from surelabel.retrieval.caption_retrieval.top_items import top_items_of_queries


@pytest.mark.parametrize("levels", [1, 4, 10**6])
@pytest.mark.parametrize("k", [1, 7, 25])
def test_equals_the_start_of_a_stable_sort(levels, k):
    random = np.random.default_rng(levels)
    scores = random.integers(levels, size=(ROWS_PER_BLOCK + 9, 25)).astype(np.float32)
    expected = [sorted(range(25), key=lambda item, row=row: -row[item])[:k] for row in scores]
    assert top_items_of_queries(scores, k=k).tolist() == expected
    transposed = np.asfortranarray(scores)
    assert top_items_of_queries(transposed, k=k).tolist() == expected


@pytest.mark.parametrize("k", [0, 4])
def test_more_items_than_there_are_is_refused(k):
    with pytest.raises(InputError, match=f"number of items, 3; got {k}"):
        top_items_of_queries(np.zeros((2, 3)), k=k)


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="rows 0 to 0"):
        top_items_of_queries(np.array([[0.0, np.nan]]), k=1)
