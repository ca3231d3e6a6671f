"""Domains: the same scenes as a sketch, at night, out of focus or through noise.

``domain(pixels (n, 3, h, w) in [0, 1], seeds (n,)) -> pixels``. What happens to a picture depends
on its own seed alone, never on the rest of the batch. Labels and boxes stay what they were.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from scipy.ndimage import gaussian_filter, gaussian_gradient_magnitude
from torch import Tensor

from surelabel.shapes import check_shapes

Picture = npt.NDArray[np.floating]  # (3, h, w)
Seeds = Sequence[int] | npt.NDArray[np.int64]
Domain = Callable[[Tensor, Seeds], Tensor]
USUAL_SIDE = 128  # strengths below are meant for pictures of this side and grow with it


def photo(pixels: Tensor, seeds: Seeds) -> Tensor:
    """The pictures as they are."""
    return pixels


def sketch(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Edges as dark lines on paper; colours are gone."""

    def drawn(picture: Picture, rng: np.random.Generator) -> Picture:
        width = 0.7 * picture.shape[-1] / USUAL_SIDE
        edges = np.max([gaussian_gradient_magnitude(channel, width) for channel in picture], axis=0)
        lines = np.clip((edges - 0.04) / 0.10, 0, 1)
        paper = rng.uniform(0.85, 0.98) * np.array([1.0, 0.98, 0.94]).reshape(3, 1, 1)
        pencil, grain = rng.uniform(0.05, 0.3), rng.normal(0, 0.015, edges.shape)
        page: Picture = paper * (1 - lines) + pencil * lines + grain
        return page

    return _each(pixels, seeds, drawn)


def night(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Dark, bluish, half without colour, with the noise of a sensor."""

    def darkened(picture: Picture, rng: np.random.Generator) -> Picture:
        muted = (picture + picture.mean(axis=0, keepdims=True)) / 2
        moonlight = rng.uniform(0.25, 0.5) * np.array([0.75, 0.9, 1.3]).reshape(3, 1, 1)
        grain = rng.normal(0, rng.uniform(0.02, 0.05), picture.shape)
        dark: Picture = muted * moonlight + grain
        return dark

    return _each(pixels, seeds, darkened)


def blur(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Out of focus: a Gaussian of 1.2 to 3 pixels at a side of 128."""

    def softened(picture: Picture, rng: np.random.Generator) -> Picture:
        width = rng.uniform(1.2, 3.0) * picture.shape[-1] / USUAL_SIDE
        soft: Picture = gaussian_filter(picture, (0, width, width))
        return soft

    return _each(pixels, seeds, softened)


def noise(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Gaussian noise of standard deviation 0.12 to 0.3 on every colour of every pixel."""

    def disturbed(picture: Picture, rng: np.random.Generator) -> Picture:
        return picture + rng.normal(0, rng.uniform(0.12, 0.3), picture.shape)

    return _each(pixels, seeds, disturbed)


DOMAINS: dict[str, Domain] = {
    "photo": photo,
    "sketch": sketch,
    "night": night,
    "blur": blur,
    "noise": noise,
}


def _each(
    pixels: Tensor, seeds: Seeds, change: Callable[[Picture, np.random.Generator], Picture]
) -> Tensor:
    check_shapes(pixels=(pixels, "n c h w"), seeds=(np.asarray(seeds), "n"))
    changed = [
        change(picture, np.random.default_rng([int(seed), 2]))  # 1 draws the captions
        for picture, seed in zip(pixels.numpy(), seeds, strict=True)
    ]
    return torch.from_numpy(np.stack(changed).astype(np.float32)).clamp(0, 1)
