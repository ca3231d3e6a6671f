"""Convert images in memory: PIL images, contents of image files and arrays of pixels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from torch import Tensor

from surelabel.errors import InputError
from surelabel.features import name_of_image_in_memory

FileContent = bytes | bytearray | memoryview


@dataclass(frozen=True)
class ImagesInMemory:
    """Images without labels that are not files.

    Attributes:
        images: PIL images, or contents of image files as bytes, length n.
    """

    images: Sequence[Image.Image | bytes]

    @cached_property
    def paths(self) -> Sequence[str]:
        """Return the names of the images in place of paths: ``image 0``, ``image 1`` and so on."""
        return [name_of_image_in_memory(row) for row in range(len(self.images))]

    def __len__(self) -> int:
        return len(self.images)


def image_in_memory(
    image: Image.Image | FileContent | npt.NDArray[Any],
) -> Image.Image | bytes:
    """Return a PIL image, the content of an image file, or the RGB image of an array of pixels.

    Raises:
        InputError: If an array does not contain pixels.
    """
    if isinstance(image, np.ndarray):
        return _image_of_pixels(image)
    return image if isinstance(image, Image.Image) else bytes(image)


def _image_of_pixels(pixels: npt.NDArray[Any]) -> Image.Image:
    """Return an RGB image of 8-bit pixels, ``(h, w, 3)``.

    Raises:
        InputError: If the array has another shape or type, or no pixels.
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise array_input_error(pixels)
    return Image.fromarray(np.ascontiguousarray(pixels))


def array_input_error(array: npt.NDArray[Any] | Tensor) -> InputError:
    """Return the error for an array or tensor that contains neither feature vectors nor pixels."""
    return InputError(
        "An array input must be a NumPy array with feature vectors, float (n, d), or RGB pixels, "
        f"uint8 (h, w, 3) or (n, h, w, 3); got {array.dtype} of shape {tuple(array.shape)}. "
        "Convert the array, or give the paths of image files."
    )
