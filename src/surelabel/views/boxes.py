"""A rectangle of whole pixels, or of whole cells of a feature map."""

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from surelabel.errors import InputError


@dataclass(frozen=True)
class Box:
    """Where a view lies. Columns and rows count from 0 at the top left.

    Attributes:
        left: First column.
        top: First row.
        width: Columns, at least 1.
        height: Rows, at least 1.
        flipped: Seen in a mirror, left for right, after it is cut out.
    """

    left: int
    top: int
    width: int
    height: int
    flipped: bool = False


def cut_out(picture: Image.Image, box: Box, *, size: tuple[int, int]) -> Image.Image:
    """What a box shows of a picture, stretched to the size a tower takes.

    Args:
        picture: Upright, in RGB.
        box: In pixels of the picture.
        size: Width and height of what comes back, in pixels; the aspect of the box is not kept.

    Returns:
        A new picture, bicubic with antialiasing.

    Raises:
        InputError: the box reaches out of the picture.

    Example:
        >>> picture = Image.new("RGB", (30, 20), "white")
        >>> cut_out(picture, Box(0, 0, 10, 20), size=(8, 8)).size
        (8, 8)
    """
    check_inside([box], picture.size)
    edges = (box.left, box.top, box.left + box.width, box.top + box.height)
    seen = picture.crop(edges).resize(size, Image.Resampling.BICUBIC)
    return seen.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if box.flipped else seen


def check_inside(boxes: Sequence[Box], size: tuple[int, int]) -> None:
    """Refuse boxes that are empty or reach out of ``size``, width and height.

    Raises:
        InputError: one is, or does.
    """
    width, height = size
    for box in boxes:
        across = 0 <= box.left < box.left + box.width <= width
        down = 0 <= box.top < box.top + box.height <= height
        if not across or not down:
            raise InputError(
                f"A box must lie inside the {width} by {height} that it is cut from and hold "
                f"something. Got {box}; draw boxes for this very size."
            )


def check_size(size: tuple[int, int]) -> None:
    """Refuse a width or height below 1.

    Raises:
        InputError: it is.
    """
    if min(size) < 1:
        raise InputError(f"size must be a width and a height of 1 or more. Got {tuple(size)}.")
