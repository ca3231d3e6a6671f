import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import InputError
from surelabel.views import Box, tiles


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 90), st.integers(0, 90))
def test_tiles_cover_every_pixel_once_and_differ_by_one_at_most(down, across, wider, higher):
    width, height = across + wider, down + higher
    seen = np.zeros((height, width), dtype=int)
    boxes = tiles((width, height), down=down, across=across)
    for box in boxes:
        seen[box.top : box.top + box.height, box.left : box.left + box.width] += 1
    assert (seen == 1).all()
    assert len(boxes) == down * across
    assert np.ptp([b.width for b in boxes]) <= 1
    assert np.ptp([b.height for b in boxes]) <= 1


def test_tiles_come_row_by_row():
    boxes = tiles((4, 6), down=2, across=2)
    assert boxes == [Box(0, 0, 2, 3), Box(2, 0, 2, 3), Box(0, 3, 2, 3), Box(2, 3, 2, 3)]


def test_one_tile_is_the_picture():
    assert tiles((7, 5), down=1, across=1) == [Box(0, 0, 7, 5)]


@pytest.mark.parametrize("size", [(2, 9), (9, 2), (0, 0)])
def test_a_picture_with_fewer_pixels_than_tiles_is_refused(size):
    with pytest.raises(InputError, match=r"a pixel for every tile, 3 across and 3 down\. Got"):
        tiles(size)


def test_no_tiles_are_refused():
    with pytest.raises(InputError, match=r"down and across must be 1 or more\. Got 0 and 3"):
        tiles((9, 9), down=0)
