"""Small pictures for a page: thumbnails, and where in a picture a label is seen."""

import base64
import math
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from surelabel.data.pictures import open_picture
from surelabel.errors import DataError
from surelabel.records import Array

SIDE = 192  # pixels of a thumbnail's longer side
MAP_SIDE = 128  # the same with a heat map
QUALITY = 80  # of the JPEG
WEAK, STRONG = 0.3, 0.7  # how much the colour covers the picture, at both ends of the scale
Box = tuple[float, float, float, float]
Pixels = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]

# Colours at nine even steps of viridis (CC0), from weak to strong: brighter is always more.
VIRIDIS = np.array(
    [
        [68, 1, 84],
        [71, 45, 123],
        [59, 82, 139],
        [44, 114, 142],
        [33, 145, 140],
        [40, 174, 128],
        [94, 201, 98],
        [173, 220, 48],
        [253, 231, 37],
    ],
    dtype=np.float64,
)


def data_uri(file: bytes, kind: str) -> str:
    """The bytes of an image file as an address that needs no file."""
    return f"data:image/{kind};base64,{base64.b64encode(file).decode()}"


def thumbnail(path: str, *, side: int = SIDE) -> Image.Image | None:
    """The picture, upright, its longer side at most ``side``; None where it cannot be read."""
    try:
        picture = open_picture(path, least_side=side)
    except DataError:
        return None
    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    return picture


def jpeg(picture: Image.Image) -> str:
    """A picture as the address of a JPEG."""
    file = BytesIO()
    picture.save(file, "JPEG", quality=QUALITY, optimize=True)
    return data_uri(file.getvalue(), "jpeg")


def heat_map(picture: Image.Image, strength: Array, *, cover: str) -> Image.Image:
    """Colour the part of a picture that the patches cover: the brighter, the stronger the label.

    Args:
        picture: RGB.
        strength: One number a patch, ``(down, across)``; only their order means something.
        cover: What the patches cover: the ``whole`` picture, its ``middle`` (the largest central
            part with the shape of the grid), or the picture ``padded`` to that shape.

    Returns:
        That part in grey under the colours, without any padding.
    """
    picture, strength, box = covered(picture, strength, cover)
    share = enlarged(shares(strength), picture.size, box)
    return painted(picture, colours(share), WEAK + (STRONG - WEAK) * share)


def covered(
    picture: Image.Image, patches: AnyArray, cover: str
) -> tuple[Image.Image, AnyArray, Box]:
    """The part of a picture that patches cover, those patches, and its edges among them."""
    down, across = patches.shape
    if cover == "middle":
        picture = middle(picture, across / down)
    if cover == "padded":
        return picture, *unpadded(patches, picture.size)
    return picture, patches, (0.0, 0.0, float(across), float(down))


def painted(picture: Image.Image, colour: Pixels, opaque: Array) -> Image.Image:
    """A picture in grey under colours, red, green and blue up to 255, ``(height, width, 3)``.

    Args:
        picture: RGB.
        colour: Of each pixel.
        opaque: How much of it the colour covers, in [0, 1], ``(height, width)``.
    """
    grey = np.asarray(picture.convert("L"), dtype=np.float64)[:, :, None]
    mixed = grey * (1 - opaque[:, :, None]) + colour * opaque[:, :, None]
    return Image.fromarray(np.rint(mixed).astype(np.uint8))


def middle(picture: Image.Image, ratio: float) -> Image.Image:
    """The largest central part whose width is ``ratio`` times its height."""
    width = min(picture.width, max(1, round(picture.height * ratio)))
    height = min(picture.height, max(1, round(picture.width / ratio)))
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    return picture.crop((left, top, left + width, top + height))


def unpadded(patches: AnyArray, size: tuple[int, int]) -> tuple[AnyArray, Box]:
    """The patches that hold some of a picture with equal margins on two sides.

    Args:
        patches: All of them, ``(down, across)``.
        size: Width and height of the picture; it fills the grid one way.

    Returns:
        Those patches, and the edges of the picture among them: left, top, right, bottom.
    """
    down, across = patches.shape
    width, height = min(across, down * size[0] / size[1]), min(down, across * size[1] / size[0])
    left, top = (across - width) / 2, (down - height) / 2
    first, above = math.floor(left), math.floor(top)
    inside = patches[above : math.ceil(top + height), first : math.ceil(left + width)]
    left, top = left - first, top - above
    return inside, (left, top, left + width, top + height)


def shares(strength: Array) -> Array:
    """From 0 at the weakest patch to 1 at the strongest; 0 everywhere when all are equal.

    Example:
        >>> shares(np.array([[-1.0, 1.0, 3.0]]))
        array([[0. , 0.5, 1. ]])
    """
    width = strength.max() - strength.min()
    scaled: Array = (strength - strength.min()) / (width or 1.0)
    return scaled


def enlarged(share: Array, size: tuple[int, int], box: Box) -> Array:
    """Patches inside the edges of ``box`` spread bilinearly over ``size`` (width, height) pixels.

    Args:
        share: Of each patch, ``(down, across)``.
        size: Of what is wanted.
        box: Left, top, right and bottom edge of what is spread, in patches.

    Returns:
        In [0, 1], ``(height, width)``.
    """
    patches = Image.fromarray(share.astype(np.float32))
    spread = patches.resize(size, Image.Resampling.BILINEAR, box=box)
    return np.asarray(spread, dtype=np.float64).clip(0, 1)


def colours(share: Array) -> Pixels:
    """The colour of each number in [0, 1], red, green and blue up to 255, ``(h, w, 3)``."""
    steps = np.linspace(0, 1, len(VIRIDIS))
    return np.stack([np.interp(share, steps, VIRIDIS[:, i]) for i in range(3)], axis=-1)
