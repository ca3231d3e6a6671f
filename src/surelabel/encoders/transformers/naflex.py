"""Preprocess images for SigLIP 2 NaFlex, with their aspect ratio and a maximum number of patches.

The pixels of an image are a row of patches, ``(3, side, side · max_num_patches + 1)``. Unused
patches are 0. The first two values of the last column are the numbers of rows and columns of the
patch grid of the image.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from surelabel.errors import InputError
from surelabel.shapes import check_shapes

RESAMPLING = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
SCALE_TOLERANCE, MAX_SCALE = 1e-5, 100.0  # of the bisection, as in transformers


class NaflexPatches(NamedTuple):
    """Input of the image tower of SigLIP 2 NaFlex.

    Attributes:
        pixel_values: Pixels of the patches, ``(n, max_num_patches, side · side · 3)``.
        pixel_attention_mask: 1 for the patches of the image, 0 for padding,
            ``(n, max_num_patches)``.
        spatial_shapes: Numbers of rows and columns of the patch grid, ``(n, 2)``.
    """

    pixel_values: Tensor
    pixel_attention_mask: Tensor
    spatial_shapes: Tensor


class NaflexPreprocessor:
    """Image preprocessing of SigLIP 2 NaFlex. The object can be pickled for data workers.

    An image is resized to the largest grid of at most ``max_num_patches`` patches with its aspect
    ratio; both sides are rounded up to whole patches.

    Args:
        settings: ``mean``, ``std`` and ``interpolation`` as in :class:`ImagePreprocessor`.
        patch_size: Side of a patch in pixels.
        max_num_patches: Largest number of patches of an image.

    Source:
        Tschannen et al., SigLIP 2, arXiv:2502.14786: NaFlex.
    """

    crop_mode = "squash"

    def __init__(self, settings: Mapping[str, Any], *, patch_size: int, max_num_patches: int):
        self._side, self._n_patches = patch_size, max_num_patches
        square = math.isqrt(max_num_patches) * patch_size
        self.settings = {
            **settings,
            "size": [square, square],  # of a square image
            "resize_mode": "squash",
            "patch_size": patch_size,
            "max_num_patches": max_num_patches,
        }

    def __call__(self, image: Image.Image) -> Tensor:
        """Return the row of patches of an upright RGB image, as described in this module."""
        rows, columns = naflex_grid(
            image.height, image.width, patch_size=self._side, max_num_patches=self._n_patches
        )
        size = (columns * self._side, rows * self._side)
        resized = image.resize(size, RESAMPLING[self.settings["interpolation"]])
        pixels = torch.from_numpy(np.asarray(resized, np.float32) / 255).permute(2, 0, 1)
        mean, std = (torch.tensor(self.settings[k])[:, None, None] for k in ("mean", "std"))
        patches = (pixels - mean) / std
        patches = patches.unflatten(1, (rows, -1)).unflatten(3, (columns, -1))
        row = torch.zeros(3, self._side, self._n_patches * self._side + 1)
        row[..., : rows * columns * self._side] = patches.permute(0, 2, 1, 3, 4).flatten(2)
        row[0, :2, -1] = torch.tensor([rows, columns], dtype=torch.float32)
        return row

    def with_size(self, size: int) -> "NaflexPreprocessor":
        """Return the preprocessing with the number of patches of square images of side ``size``."""
        settings = {k: self.settings[k] for k in ("mean", "std", "interpolation")}
        n_patches = (size // self._side) ** 2
        return NaflexPreprocessor(settings, patch_size=self._side, max_num_patches=n_patches)

    @property
    def input_side(self) -> int:
        """Return an upper limit of the shorter side of a resized image, in pixels."""
        return int(self.settings["size"][0]) + self._side

    def unpack(self, pixels: Tensor) -> NaflexPatches:
        """Return the input of the image tower for rows of patches ``(n, 3, side, …)``.

        Raises:
            InputError: If the pixels have another shape.
        """
        check_shapes(pixels=(pixels, "n rgb h w"))
        expected = (3, self._side, self._n_patches * self._side + 1)
        if tuple(pixels.shape[1:]) != expected:
            raise InputError(
                f"pixels for this encoder must be preprocessed images of shape (n, {expected[0]}, "
                f"{expected[1]}, {expected[2]}); got {tuple(pixels.shape)}. Use preprocess() of "
                "the encoder."
            )
        patches = pixels[..., :-1].unflatten(3, (self._n_patches, self._side))
        grids = pixels[:, 0, :2, -1].long()
        positions = torch.arange(self._n_patches, device=pixels.device)
        return NaflexPatches(
            patches.permute(0, 3, 2, 4, 1).flatten(2),
            (positions < grids.prod(dim=1, keepdim=True)).int(),
            grids,
        )


def naflex_grid(
    height: int, width: int, *, patch_size: int, max_num_patches: int
) -> tuple[int, int]:
    """Return the numbers of rows and columns of the patch grid of an image.

    Args:
        height: Height of the image in pixels.
        width: Width of the image in pixels.
        patch_size: Side of a patch in pixels.
        max_num_patches: Largest number of patches.

    Example:
        >>> naflex_grid(480, 640, patch_size=16, max_num_patches=256)
        (14, 18)
    """

    def grid(scale: float) -> tuple[int, int]:
        rows, columns = (max(1, math.ceil(s * scale / patch_size)) for s in (height, width))
        return rows, columns

    low, high = SCALE_TOLERANCE / 10, MAX_SCALE
    while high - low >= SCALE_TOLERANCE:
        middle = (low + high) / 2
        low, high = (middle, high) if math.prod(grid(middle)) <= max_num_patches else (low, middle)
    return grid(low)
