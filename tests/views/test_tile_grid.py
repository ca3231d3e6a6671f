import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import InputError
from surelabel.views import Box, tile_grid_boxes


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 90), st.integers(0, 90))
def test_tiles_cover_every_pixel_once_and_differ_by_one_at_most(down, across, wider, higher):
    width, height = across + wider, down + higher
    seen = np.zeros((height, width), dtype=int)
    boxes = tile_grid_boxes((width, height), rows=down, columns=across)
    for box in boxes:
        seen[box.top : box.top + box.height, box.left : box.left + box.width] += 1
    assert (seen == 1).all()
    assert len(boxes) == down * across
    assert np.ptp([b.width for b in boxes]) <= 1
    assert np.ptp([b.height for b in boxes]) <= 1


def test_tiles_come_row_by_row():
    boxes = tile_grid_boxes((4, 6), rows=2, columns=2)
    assert boxes == [Box(0, 0, 2, 3), Box(2, 0, 2, 3), Box(0, 3, 2, 3), Box(2, 3, 2, 3)]


def test_one_tile_is_the_image():
    assert tile_grid_boxes((7, 5), rows=1, columns=1) == [Box(0, 0, 7, 5)]


@pytest.mark.parametrize("size", [(2, 9), (9, 2), (0, 0)])
def test_an_image_with_fewer_pixels_than_tiles_is_refused(size):
    with pytest.raises(
        InputError, match=r"3 by 3 tiles must be at least 3 pixels wide and 3 pixels high; got"
    ):
        tile_grid_boxes(size)


def test_no_tiles_are_refused():
    with pytest.raises(InputError, match=r"rows and columns must be 1 or more; got 0 and 3"):
        tile_grid_boxes((9, 9), rows=0)
