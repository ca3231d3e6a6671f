"""Apply visual domains to generated scenes: photo, sketch, night, blur and noise.

A domain is a function ``domain(pixels (n, 3, h, w) in [0, 1], seeds (n,)) -> pixels``. The result
has the same shape and range. The output for an image depends only on this image and its seed, not
on the rest of the batch. Labels and boxes do not change.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from scipy.ndimage import gaussian_filter, gaussian_gradient_magnitude
from torch import Tensor

from surelabel.shapes import check_shapes

PixelArray = npt.NDArray[np.floating]  # (3, h, w)
Seeds = Sequence[int] | npt.NDArray[np.int64]
Domain = Callable[[Tensor, Seeds], Tensor]
REFERENCE_SIDE = 128  # pixels; filter widths are for this side and scale with the side


def photo_domain(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Return the images unchanged."""
    return pixels


def sketch_domain(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Return the edges of the images as dark lines on a light background, without colours."""

    def sketch_image(image: PixelArray, rng: np.random.Generator) -> PixelArray:
        width = 0.7 * image.shape[-1] / REFERENCE_SIDE
        edges = np.max([gaussian_gradient_magnitude(channel, width) for channel in image], axis=0)
        lines = np.clip((edges - 0.04) / 0.10, 0, 1)
        paper = rng.uniform(0.85, 0.98) * np.array([1.0, 0.98, 0.94]).reshape(3, 1, 1)
        pencil, grain = rng.uniform(0.05, 0.3), rng.normal(0, 0.015, edges.shape)
        page: PixelArray = paper * (1 - lines) + pencil * lines + grain
        return page

    return _apply_domain_to_each_image(pixels, seeds, sketch_image)


def night_domain(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Return darkened, bluish images with half the saturation and added sensor noise."""

    def darken_image(image: PixelArray, rng: np.random.Generator) -> PixelArray:
        muted = (image + image.mean(axis=0, keepdims=True)) / 2
        moonlight = rng.uniform(0.25, 0.5) * np.array([0.75, 0.9, 1.3]).reshape(3, 1, 1)
        grain = rng.normal(0, rng.uniform(0.02, 0.05), image.shape)
        dark: PixelArray = muted * moonlight + grain
        return dark

    return _apply_domain_to_each_image(pixels, seeds, darken_image)


def blur_domain(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Blur the images with a Gaussian filter.

    The standard deviation is sampled uniformly for each image: from 1.2 to 3 pixels for images of
    128 by 128 pixels, and proportional to the image width for other sizes.
    """

    def blur_image(image: PixelArray, rng: np.random.Generator) -> PixelArray:
        width = rng.uniform(1.2, 3.0) * image.shape[-1] / REFERENCE_SIDE
        soft: PixelArray = gaussian_filter(image, (0, width, width))
        return soft

    return _apply_domain_to_each_image(pixels, seeds, blur_image)


def noise_domain(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Add Gaussian noise to all channels, and clip the pixels to [0, 1].

    The standard deviation is sampled uniformly from 0.12 to 0.3 for each image.
    """

    def add_noise(image: PixelArray, rng: np.random.Generator) -> PixelArray:
        return image + rng.normal(0, rng.uniform(0.12, 0.3), image.shape)

    return _apply_domain_to_each_image(pixels, seeds, add_noise)


DOMAINS: dict[str, Domain] = {
    "photo": photo_domain,
    "sketch": sketch_domain,
    "night": night_domain,
    "blur": blur_domain,
    "noise": noise_domain,
}


def _apply_domain_to_each_image(
    pixels: Tensor, seeds: Seeds, transform: Callable[[PixelArray, np.random.Generator], PixelArray]
) -> Tensor:
    check_shapes(pixels=(pixels, "n c h w"), seeds=(np.asarray(seeds), "n"))
    transformed = [
        transform(image, np.random.default_rng([int(seed), 2]))  # [seed, 1] is for captions
        for image, seed in zip(pixels.numpy(), seeds, strict=True)
    ]
    return torch.from_numpy(np.stack(transformed).astype(np.float32)).clamp(0, 1)
