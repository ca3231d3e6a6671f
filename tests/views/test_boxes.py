import numpy as np
import pytest
from PIL import Image

from surelabel.errors import InputError
from surelabel.views import Box, crop_and_resize_box

IMAGE = Image.fromarray(np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3))


def test_a_box_cuts_its_own_pixels_out():
    seen = np.asarray(crop_and_resize_box(IMAGE, Box(2, 1, 3, 2), size=(3, 2)))
    np.testing.assert_array_equal(seen, np.asarray(IMAGE)[1:3, 2:5])


def test_a_flipped_box_is_seen_in_a_mirror():
    seen = np.asarray(crop_and_resize_box(IMAGE, Box(2, 1, 3, 2, flipped=True), size=(3, 2)))
    np.testing.assert_array_equal(seen, np.asarray(IMAGE)[1:3, 2:5][:, ::-1])


def test_nothing_outside_the_box_bleeds_in():
    image = Image.new("RGB", (20, 20), "white")
    image.paste("black", (5, 5, 15, 15))
    assert np.asarray(crop_and_resize_box(image, Box(5, 5, 10, 10), size=(64, 64))).max() == 0


def test_an_image_of_one_pixel_is_seen_whole():
    dot = Image.new("RGB", (1, 1), (10, 20, 30))
    seen = np.asarray(crop_and_resize_box(dot, Box(0, 0, 1, 1), size=(32, 16)))
    assert seen.shape == (16, 32, 3)
    assert (seen == [10, 20, 30]).all()


@pytest.mark.parametrize(
    "box", [Box(-1, 0, 2, 2), Box(0, 3, 2, 2), Box(5, 0, 2, 1), Box(0, 0, 0, 1), Box(0, 0, 1, -1)]
)
def test_a_box_that_reaches_out_or_is_empty_is_refused(box):
    with pytest.raises(InputError, match=r"grid of 6 by 4; .* Compute the boxes for this size"):
        crop_and_resize_box(IMAGE, box, size=(8, 8))
