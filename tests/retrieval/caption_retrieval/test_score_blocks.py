import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.retrieval.caption_retrieval.score_blocks import (
    COLUMNS_PER_TILE,
    ROWS_PER_BLOCK,
    iterate_score_blocks,
)


@pytest.mark.parametrize("is_transposed", [False, True])
def test_the_blocks_are_the_rows_in_order(is_transposed):
    shape = (2 * ROWS_PER_BLOCK + 3, 2 * COLUMNS_PER_TILE + 5)
    scores = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    matrix = np.asfortranarray(scores) if is_transposed else scores
    starts, blocks = zip(*iterate_score_blocks(matrix), strict=True)
    assert starts == (0, ROWS_PER_BLOCK, 2 * ROWS_PER_BLOCK)
    np.testing.assert_array_equal(np.concatenate(blocks), scores)
    assert all(block.flags.c_contiguous for block in blocks)


def test_rows_that_are_stored_in_order_are_not_copied():
    scores = np.zeros((ROWS_PER_BLOCK + 1, 4), np.float32)
    assert all(np.shares_memory(block, scores) for _, block in iterate_score_blocks(scores))


def test_a_score_that_is_not_finite_is_refused_with_its_rows():
    scores = np.zeros((ROWS_PER_BLOCK + 2, 3))
    scores[ROWS_PER_BLOCK, 1] = np.nan
    with pytest.raises(InputError, match=f"rows {ROWS_PER_BLOCK} to {ROWS_PER_BLOCK + 1}"):
        list(iterate_score_blocks(scores))
