"""Small random pieces of a picture, each looked at alone: what the main object hides comes out."""

import math

import torch

from surelabel.errors import InputError
from surelabel.views.boxes import Box, check_size


def random_crops(
    size: tuple[int, int],
    count: int,
    *,
    generator: torch.Generator,
    area: tuple[float, float] = (0.1, 0.2),
    aspect: tuple[float, float] = (3 / 4, 4 / 3),
    flip: float = 0.5,
) -> list[Box]:
    """Draw boxes of random place, area, shape and side.

    The area is uniform, the aspect uniform in its logarithm, the place uniform among those where
    the box fits. Drawn from a grid instead of a picture, boxes are sub-grids.

    Args:
        size: Width and height of the picture in pixels, or columns and rows of a grid.
        count: How many boxes (M in the paper).
        generator: Where chance comes from.
        area: Least and greatest part of the picture that a box covers (rho), in (0, 1].
        aspect: Least and greatest width over height, > 0.
        flip: Chance that a box is mirrored, in [0, 1].

    Returns:
        ``count`` boxes inside ``size``.

    Raises:
        InputError: ``size`` is empty, ``count`` is negative, or a setting is out of its range.

    Source:
        Adapting Vision-Language Models from Iconic to Inclusive (TailorCLIP), arXiv:2606.11626,
        section 3.2, eq. 5; M = 20 by section 4.3.

    Differs:
        The paper says only that rho lies in (0, 1); area, aspect and flip are those of the
        authors' code, which draws 30. For the same random numbers the boxes are those of
        torchvision's RandomResizedCrop, except in very oblong or tiny pictures, where no such box
        fits: there the side that is too long or empty is cut to the picture or set to 1, and the
        place stays random; torchvision takes the middle, always the same.

    Example:
        >>> random_crops((100, 80), 1, generator=torch.Generator().manual_seed(0))
        [Box(left=0, top=42, width=37, height=32, flipped=True)]
    """
    check_size(size)
    if count < 0:
        raise InputError(f"count must be 0 or more. Got {count}.")
    if not 0 < area[0] <= area[1] <= 1:
        raise InputError(f"area must be two parts in (0, 1], the lesser first. Got {area}.")
    if not 0 < aspect[0] <= aspect[1] < math.inf:
        raise InputError(f"aspect must be two ratios above 0, the lesser first. Got {aspect}.")
    if not 0 <= flip <= 1:
        raise InputError(f"flip must be a chance in [0, 1]. Got {flip}.")
    return [_box(size, area, aspect, flip, generator) for _ in range(count)]


def _box(
    size: tuple[int, int],
    area: tuple[float, float],
    aspect: tuple[float, float],
    flip: float,
    generator: torch.Generator,
) -> Box:
    narrow, wide = torch.tensor(aspect).log().tolist()
    pixels = size[0] * size[1] * _uniform(*area, generator)
    ratio = torch.tensor(_uniform(narrow, wide, generator)).exp().item()
    width = min(max(round(math.sqrt(pixels * ratio)), 1), size[0])
    height = min(max(round(math.sqrt(pixels / ratio)), 1), size[1])
    top = _below(size[1] - height + 1, generator)
    left = _below(size[0] - width + 1, generator)
    return Box(left, top, width, height, flipped=_uniform(0, 1, generator) < flip)


def _uniform(low: float, high: float, generator: torch.Generator) -> float:
    return torch.empty(1).uniform_(low, high, generator=generator).item()


def _below(end: int, generator: torch.Generator) -> int:
    return int(torch.randint(0, end, (1,), generator=generator))
