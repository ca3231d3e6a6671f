import numpy as np
import pytest
from PIL import Image

from surelabel.errors import InputError
from surelabel.views import Box, cut_out

PICTURE = Image.fromarray(np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3))


def test_a_box_cuts_its_own_pixels_out():
    seen = np.asarray(cut_out(PICTURE, Box(2, 1, 3, 2), size=(3, 2)))
    np.testing.assert_array_equal(seen, np.asarray(PICTURE)[1:3, 2:5])


def test_a_flipped_box_is_seen_in_a_mirror():
    seen = np.asarray(cut_out(PICTURE, Box(2, 1, 3, 2, flipped=True), size=(3, 2)))
    np.testing.assert_array_equal(seen, np.asarray(PICTURE)[1:3, 2:5][:, ::-1])


def test_nothing_outside_the_box_bleeds_in():
    picture = Image.new("RGB", (20, 20), "white")
    picture.paste("black", (5, 5, 15, 15))
    assert np.asarray(cut_out(picture, Box(5, 5, 10, 10), size=(64, 64))).max() == 0


def test_a_picture_of_one_pixel_is_seen_whole():
    dot = Image.new("RGB", (1, 1), (10, 20, 30))
    seen = np.asarray(cut_out(dot, Box(0, 0, 1, 1), size=(32, 16)))
    assert seen.shape == (16, 32, 3)
    assert (seen == [10, 20, 30]).all()


@pytest.mark.parametrize(
    "box", [Box(-1, 0, 2, 2), Box(0, 3, 2, 2), Box(5, 0, 2, 1), Box(0, 0, 0, 1), Box(0, 0, 1, -1)]
)
def test_a_box_that_reaches_out_or_is_empty_is_refused(box):
    with pytest.raises(InputError, match=r"inside the 6 by 4 .* draw boxes for this very size"):
        cut_out(PICTURE, box, size=(8, 8))
