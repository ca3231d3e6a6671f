import numpy as np
import pytest

from surelabel.metrics.arrays.row_blocks import iterate_row_blocks, transpose_in_row_blocks


@pytest.mark.parametrize("rows", [1, 3, 10, 11])
def test_every_row_occurs_once_and_rows_stay_aligned(rows):
    a, b = np.arange(10), np.arange(20).reshape(10, 2)
    parts = list(iterate_row_blocks(a, b, rows=rows))
    assert all(0 < len(x) == len(y) <= rows for x, y in parts)
    np.testing.assert_array_equal(np.concatenate([x for x, _ in parts]), a)
    np.testing.assert_array_equal(np.concatenate([y for _, y in parts]), b)


def test_an_empty_array_has_no_blocks():
    assert list(iterate_row_blocks(np.empty((0, 3)))) == []


@pytest.mark.parametrize("shape", [(0, 3), (1300, 5), (512, 1), (3, 0)])
def test_a_transpose_in_blocks_is_the_transpose(shape):
    values = np.arange(shape[0] * shape[1]).reshape(shape)
    transpose = transpose_in_row_blocks(values)
    assert transpose.flags.c_contiguous
    np.testing.assert_array_equal(transpose, values.T)
