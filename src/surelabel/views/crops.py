"""Sample random crops, which can show objects other than the main object of an image."""

import math

import torch

from surelabel.errors import InputError
from surelabel.views.boxes import Box, check_image_size_for_boxes


def random_crop_boxes(
    size: tuple[int, int],
    count: int,
    *,
    generator: torch.Generator,
    area: tuple[float, float] = (0.1, 0.2),
    aspect: tuple[float, float] = (3 / 4, 4 / 3),
    flip: float = 0.5,
) -> list[Box]:
    """Sample boxes with random position, area and aspect ratio, and mirror some of them.

    The area, the logarithm of the aspect ratio, and the position inside the image are sampled
    uniformly. If ``size`` is the size of a grid of cells, the boxes are sub-grids.

    Args:
        size: Width and height of the image in pixels, or numbers of columns and rows of a grid of
            cells.
        count: Number of boxes (M in TailorCLIP), >= 0.
        generator: Random number generator.
        area: Smallest and largest fraction of the image area that a box covers (rho in
            TailorCLIP), in (0, 1].
        aspect: Smallest and largest ratio of width to height, > 0.
        flip: Probability that a box is mirrored horizontally, in [0, 1].

    Returns:
        ``count`` boxes inside the image or grid.

    Raises:
        InputError: If a width or height is below 1, ``count`` is negative, or a setting is out of
            range.

    Source:
        Adapting Vision-Language Models from Iconic to Inclusive (TailorCLIP), arXiv:2606.11626,
        section 3.2, eq. 5; M = 20 by section 4.3.

    Differs:
        The paper only states that rho is in (0, 1). The defaults of ``area``, ``aspect`` and
        ``flip`` are from the authors' code, which samples 30 crops. If a sampled box fits into the
        image, it equals the box of torchvision's RandomResizedCrop for equal random numbers. In a
        very elongated or tiny image, a sampled box may not fit. The sides of such a box are clipped
        to the range from 1 to the image side, and its position is random. In contrast, torchvision
        samples up to ten boxes and then uses the center of the image.

    Example:
        >>> random_crop_boxes((100, 80), 1, generator=torch.Generator().manual_seed(0))
        [Box(left=0, top=42, width=37, height=32, flipped=True)]
    """
    check_image_size_for_boxes(size)
    if count < 0:
        raise InputError(f"count must be 0 or more; got {count}.")
    if not 0 < area[0] <= area[1] <= 1:
        raise InputError(f"area must be two fractions in (0, 1], the smaller first; got {area}.")
    if not 0 < aspect[0] <= aspect[1] < math.inf:
        raise InputError(f"aspect must be two ratios above 0, the smaller first; got {aspect}.")
    if not 0 <= flip <= 1:
        raise InputError(f"flip must be a probability in [0, 1]; got {flip}.")
    return [_sample_crop_box(size, area, aspect, flip, generator) for _ in range(count)]


def _sample_crop_box(
    size: tuple[int, int],
    area: tuple[float, float],
    aspect: tuple[float, float],
    flip: float,
    generator: torch.Generator,
) -> Box:
    min_log_aspect, max_log_aspect = torch.tensor(aspect).log().tolist()
    n_pixels = size[0] * size[1] * _sample_uniform_for_crop(*area, generator)
    ratio = (
        torch.tensor(_sample_uniform_for_crop(min_log_aspect, max_log_aspect, generator))
        .exp()
        .item()
    )
    width = min(max(round(math.sqrt(n_pixels * ratio)), 1), size[0])
    height = min(max(round(math.sqrt(n_pixels / ratio)), 1), size[1])
    top = _sample_integer_for_crop(size[1] - height + 1, generator)
    left = _sample_integer_for_crop(size[0] - width + 1, generator)
    return Box(left, top, width, height, flipped=_sample_uniform_for_crop(0, 1, generator) < flip)


def _sample_uniform_for_crop(low: float, high: float, generator: torch.Generator) -> float:
    return torch.empty(1).uniform_(low, high, generator=generator).item()


def _sample_integer_for_crop(end: int, generator: torch.Generator) -> int:
    return int(torch.randint(0, end, (1,), generator=generator))
