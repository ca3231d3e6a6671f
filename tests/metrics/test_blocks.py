import numpy as np
import pytest

from surelabel.metrics.blocks import blocks


@pytest.mark.parametrize("rows", [1, 3, 10, 11])
def test_every_row_comes_once_and_beside_its_own(rows):
    a, b = np.arange(10), np.arange(20).reshape(10, 2)
    parts = list(blocks(a, b, rows=rows))
    assert all(0 < len(x) == len(y) <= rows for x, y in parts)
    np.testing.assert_array_equal(np.concatenate([x for x, _ in parts]), a)
    np.testing.assert_array_equal(np.concatenate([y for _, y in parts]), b)


def test_nothing_comes_of_nothing():
    assert list(blocks(np.empty((0, 3)))) == []
