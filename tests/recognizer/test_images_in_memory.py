import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.errors import InputError
from surelabel.recognizer.images_in_memory import (
    ImagesInMemory,
    array_input_error,
    image_in_memory,
)


def test_images_in_memory_are_numbered():
    images = ImagesInMemory([b"first", b"second"])
    assert len(images) == 2
    assert images.paths == ["image 0", "image 1"]


@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_the_content_of_a_file_is_returned_as_bytes(buffer):
    assert image_in_memory(buffer(b"content")) == b"content"
    assert isinstance(image_in_memory(buffer(b"content")), bytes)


def test_pixels_are_returned_as_an_image_and_an_image_is_unchanged():
    pixels = np.arange(60, dtype=np.uint8).reshape(5, 4, 3)
    image = image_in_memory(pixels[:, ::-1])
    np.testing.assert_array_equal(np.asarray(image), pixels[:, ::-1])
    assert image.mode == "RGB"
    grey = Image.new("L", (4, 5))
    assert image_in_memory(grey) is grey


def test_an_array_without_pixels_is_refused():
    with pytest.raises(InputError, match=r"got float64 of shape \(5, 4, 3\)\. Convert the array"):
        image_in_memory(np.zeros((5, 4, 3)))


@pytest.mark.parametrize(
    "array", [np.zeros((2, 3), np.int64), torch.zeros(2, 3, dtype=torch.int64)]
)
def test_the_error_of_an_array_contains_its_type_and_shape(array):
    assert f"got {array.dtype} of shape (2, 3). Convert" in str(array_input_error(array))
