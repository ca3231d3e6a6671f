"""Visual domains of generated scenes: photo, sketch, night, blur and noise.

``domain(pixels (n, 3, h, w) in [0, 1], seeds (n,)) -> pixels``. The transform of an image depends
only on its seed and not on the other images of the batch. Labels and boxes do not change.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from scipy.ndimage import gaussian_filter, gaussian_gradient_magnitude
from torch import Tensor

from surelabel.shapes import check_shapes

Image = npt.NDArray[np.floating]  # (3, h, w)
Seeds = Sequence[int] | npt.NDArray[np.int64]
Domain = Callable[[Tensor, Seeds], Tensor]
REFERENCE_SIDE = 128  # pixels; filter widths are for this side and scale with the side


def photo(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Return the images unchanged."""
    return pixels


def sketch(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Return the edges of the images as dark lines on light paper, without colours."""

    def sketch_image(image: Image, rng: np.random.Generator) -> Image:
        width = 0.7 * image.shape[-1] / REFERENCE_SIDE
        edges = np.max([gaussian_gradient_magnitude(channel, width) for channel in image], axis=0)
        lines = np.clip((edges - 0.04) / 0.10, 0, 1)
        paper = rng.uniform(0.85, 0.98) * np.array([1.0, 0.98, 0.94]).reshape(3, 1, 1)
        pencil, grain = rng.uniform(0.05, 0.3), rng.normal(0, 0.015, edges.shape)
        page: Image = paper * (1 - lines) + pencil * lines + grain
        return page

    return _apply_domain_to_each(pixels, seeds, sketch_image)


def night(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Return dark and bluish images with half the saturation and sensor noise."""

    def darken_image(image: Image, rng: np.random.Generator) -> Image:
        muted = (image + image.mean(axis=0, keepdims=True)) / 2
        moonlight = rng.uniform(0.25, 0.5) * np.array([0.75, 0.9, 1.3]).reshape(3, 1, 1)
        grain = rng.normal(0, rng.uniform(0.02, 0.05), image.shape)
        dark: Image = muted * moonlight + grain
        return dark

    return _apply_domain_to_each(pixels, seeds, darken_image)


def blur(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Blur the images with a Gaussian of 1.2 to 3 pixels at a side of 128 pixels."""

    def blur_image(image: Image, rng: np.random.Generator) -> Image:
        width = rng.uniform(1.2, 3.0) * image.shape[-1] / REFERENCE_SIDE
        soft: Image = gaussian_filter(image, (0, width, width))
        return soft

    return _apply_domain_to_each(pixels, seeds, blur_image)


def noise(pixels: Tensor, seeds: Seeds) -> Tensor:
    """Add Gaussian noise of standard deviation 0.12 to 0.3 to each channel of each pixel."""

    def add_noise(image: Image, rng: np.random.Generator) -> Image:
        return image + rng.normal(0, rng.uniform(0.12, 0.3), image.shape)

    return _apply_domain_to_each(pixels, seeds, add_noise)


DOMAINS: dict[str, Domain] = {
    "photo": photo,
    "sketch": sketch,
    "night": night,
    "blur": blur,
    "noise": noise,
}


def _apply_domain_to_each(
    pixels: Tensor, seeds: Seeds, transform: Callable[[Image, np.random.Generator], Image]
) -> Tensor:
    check_shapes(pixels=(pixels, "n c h w"), seeds=(np.asarray(seeds), "n"))
    transformed = [
        transform(image, np.random.default_rng([int(seed), 2]))  # [seed, 1] is for captions
        for image, seed in zip(pixels.numpy(), seeds, strict=True)
    ]
    return torch.from_numpy(np.stack(transformed).astype(np.float32)).clamp(0, 1)
