"""Render heat maps over images."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from surelabel.arrays import Array

MIN_OPACITY, MAX_OPACITY = 0.3, 0.7  # opacity of the colours at both ends of the scale
PatchEdges = tuple[float, float, float, float]  # left, top, right, bottom
Pixels = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]

# RGB colours at nine equidistant steps of viridis (CC0); brightness rises with the value.
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


def draw_heat_map(image: Image.Image, similarity: Array, *, crop_mode: str) -> Image.Image:
    """Render a heat map over the part of an image that the patches cover.

    Colours are scaled to the minimum and maximum of each map, so the colours of different maps
    cannot be compared.

    Args:
        image: RGB image.
        similarity: Similarity of each patch to the label, ``(rows, columns)``.
        crop_mode: Part of the image that the patches cover: ``squash`` (the whole image),
            ``center`` (the largest central part with the aspect ratio of the grid), or ``border``
            (the image, padded to that aspect ratio).

    Returns:
        Grey image without padding, blended with the colours of the heat map.
    """
    image, similarity, box = crop_image_for_heat_map_drawing(image, similarity, crop_mode)
    scaled = upsample_heat_map_patches(min_max_scale_heat_map(similarity), image.size, box)
    opacity = MIN_OPACITY + (MAX_OPACITY - MIN_OPACITY) * scaled
    return blend_heat_map_colours(image, viridis_heat_map_colours(scaled), opacity)


def crop_image_for_heat_map_drawing(
    image: Image.Image, patches: AnyArray, crop_mode: str
) -> tuple[Image.Image, AnyArray, PatchEdges]:
    """Crop an image to the part that the patches cover, and remove the patches in the padding.

    Args:
        image: RGB image.
        patches: Value of each patch, ``(rows, columns)``.
        crop_mode: Crop mode, which determines the part of the image that the patches cover:
            ``squash``, ``center`` or ``border``; see `draw_heat_map`.

    Returns:
        The cropped image, the patches that overlap it, and the left, top, right and bottom edges of
        the cropped image. The unit of the edges is one patch. The origin is the top left corner
        of the first returned patch.
    """
    down, across = patches.shape
    if crop_mode == "center":
        image = crop_center_for_heat_map_drawing(image, across / down)
    if crop_mode == "border":
        return image, *remove_padding_for_heat_map_drawing(patches, image.size)
    return image, patches, (0.0, 0.0, float(across), float(down))


def blend_heat_map_colours(image: Image.Image, colours: Pixels, opacity: Array) -> Image.Image:
    """Blend the grey version of an image with a colour for each pixel.

    Args:
        image: RGB image.
        colours: RGB colours in [0, 255], ``(height, width, 3)``.
        opacity: Weight of the colours in [0, 1], ``(height, width)``.
    """
    grey = np.asarray(image.convert("L"), dtype=np.float64)[:, :, None]
    blended = grey * (1 - opacity[:, :, None]) + colours * opacity[:, :, None]
    return Image.fromarray(np.rint(blended).astype(np.uint8))


def crop_center_for_heat_map_drawing(image: Image.Image, ratio: float) -> Image.Image:
    """Crop an image to the largest central part with a given aspect ratio.

    Args:
        image: Image to crop.
        ratio: Aspect ratio of the result, width divided by height.
    """
    width = min(image.width, max(1, round(image.height * ratio)))
    height = min(image.height, max(1, round(image.width / ratio)))
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


def remove_padding_for_heat_map_drawing(
    patches: AnyArray, size: tuple[int, int]
) -> tuple[AnyArray, PatchEdges]:
    """Remove the patches that contain only padding around an image in the center of the grid.

    Args:
        patches: Value of each patch, ``(rows, columns)``.
        size: Width and height of the image in pixels. The image fills the width or the height of
            the grid.

    Returns:
        The patches that overlap the image, and the left, top, right and bottom edges of the image.
        The unit of the edges is one patch. The origin is the top left corner of the first
        returned patch.
    """
    down, across = patches.shape
    width, height = min(across, down * size[0] / size[1]), min(down, across * size[1] / size[0])
    left, top = (across - width) / 2, (down - height) / 2
    first_column, first_row = math.floor(left), math.floor(top)
    remaining = patches[first_row : math.ceil(top + height), first_column : math.ceil(left + width)]
    left, top = left - first_column, top - first_row
    return remaining, (left, top, left + width, top + height)


def min_max_scale_heat_map(values: Array) -> Array:
    """Scale the values of a heat map linearly to [0, 1], or return zeros if all are equal.

    Example:
        >>> min_max_scale_heat_map(np.array([[-1.0, 1.0, 3.0]]))
        array([[0. , 0.5, 1. ]])
    """
    value_range = values.max() - values.min()
    scaled: Array = (values - values.min()) / (value_range or 1.0)
    return scaled


def upsample_heat_map_patches(patches: Array, size: tuple[int, int], box: PatchEdges) -> Array:
    """Upsample patch values to pixels with bilinear interpolation.

    Args:
        patches: Value of each patch, ``(rows, columns)``.
        size: Width and height of the result in pixels.
        box: Left, top, right and bottom edge of the part to upsample, in units of patches.

    Returns:
        Values clipped to [0, 1], ``(height, width)``.
    """
    grid = Image.fromarray(patches.astype(np.float32))
    pixels = grid.resize(size, Image.Resampling.BILINEAR, box=box)
    return np.asarray(pixels, dtype=np.float64).clip(0, 1)


def viridis_heat_map_colours(values: Array) -> Pixels:
    """Map values in [0, 1] to RGB colours of viridis in [0, 255], ``(height, width, 3)``."""
    steps = np.linspace(0, 1, len(VIRIDIS))
    return np.stack([np.interp(values, steps, VIRIDIS[:, i]) for i in range(3)], axis=-1)
