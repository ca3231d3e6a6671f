"""Define boxes, which are rectangles of whole pixels or of whole cells of a feature map."""

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from surelabel.errors import InputError


@dataclass(frozen=True)
class Box:
    """Position and size of a view; columns and rows are counted from 0 at the top left.

    Attributes:
        left: First column.
        top: First row.
        width: Number of columns, at least 1.
        height: Number of rows, at least 1.
        flipped: Whether the view is mirrored horizontally after cropping.
    """

    left: int
    top: int
    width: int
    height: int
    flipped: bool = False


def crop_and_resize_box(image: Image.Image, box: Box, *, size: tuple[int, int]) -> Image.Image:
    """Crop a box from an image and resize it to the input size of an encoder.

    Args:
        image: Upright image in RGB.
        box: Box in pixels of the image.
        size: Width and height of the result in pixels. If the aspect ratio of ``size`` differs from
            that of the box, the result is distorted.

    Returns:
        A new image, resized with bicubic interpolation and antialiasing, and mirrored horizontally
        if ``box.flipped`` is True.

    Raises:
        InputError: If the box is empty or extends beyond the image.

    Example:
        >>> image = Image.new("RGB", (30, 20), "white")
        >>> crop_and_resize_box(image, Box(0, 0, 10, 20), size=(8, 8)).size
        (8, 8)
    """
    check_boxes_inside([box], image.size)
    edges = (box.left, box.top, box.left + box.width, box.top + box.height)
    # Image.crop raises an error if Pillow's global limit of pixels is exceeded
    crop = image.transform((box.width, box.height), Image.Transform.EXTENT, edges)
    view = crop.resize(size, Image.Resampling.BICUBIC)
    return view.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if box.flipped else view


def check_boxes_inside(boxes: Sequence[Box], size: tuple[int, int]) -> None:
    """Check that no box is empty or extends beyond an image of the given width and height.

    Raises:
        InputError: If a box is empty or extends beyond the image.
    """
    width, height = size
    for box in boxes:
        fits_across = 0 <= box.left < box.left + box.width <= width
        fits_down = 0 <= box.top < box.top + box.height <= height
        if not fits_across or not fits_down:
            raise InputError(
                f"A box must be non-empty and inside the image or grid of {width} by {height}; "
                f"got {box}. Compute the boxes for this size."
            )


def check_image_size_for_boxes(size: tuple[int, int]) -> None:
    """Check that width and height are at least 1.

    Raises:
        InputError: If the width or the height is below 1.
    """
    if min(size) < 1:
        raise InputError(f"size must be a width and a height of 1 or more; got {tuple(size)}.")
