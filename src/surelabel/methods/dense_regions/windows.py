"""Select image windows around the highest-scoring patches of different labels."""

import torch
from torch import Tensor

from surelabel.shapes import check_shapes

RelativeBox = tuple[float, float, float, float]


def select_windows(maps: Tensor, *, count: int, window_size: float) -> list[list[RelativeBox]]:
    """Return windows around the highest-scoring patches of different labels.

    The first window is centered on the patch with the highest score of all labels, and is shifted
    into the image if necessary. Each further window is centered on the patch with the highest
    score, among the labels without a window and the patches outside all windows.

    Args:
        maps: Score of each label at each patch, ``(n, c, down, across)``.
        count: Largest number of windows per image.
        window_size: Width and height of a window as fractions of the image, in (0, 1].

    Returns:
        For each image, the left, top, right and bottom edges of the windows, as fractions of the
        image in [0, 1]. There are fewer than ``count`` windows if no label or no patch is left.

    Source:
        None; ours. TagCLIP (Lin et al., AAAI 2024) crops one box for each high-scoring label
        instead.

    Example:
        >>> maps = torch.tensor([[[[0.0, 0.0, 1.0, 2.0]], [[0.0, 1.0, 0.0, 0.0]]]])
        >>> select_windows(maps, count=2, window_size=0.5)
        [[(0.5, 0.25, 1.0, 0.75), (0.125, 0.25, 0.625, 0.75)]]
    """
    sizes = check_shapes(maps=(maps, "n c down across"))
    down, across = sizes["down"], sizes["across"]
    y = ((torch.arange(down, device=maps.device) + 0.5) / down).repeat_interleave(across)
    x = ((torch.arange(across, device=maps.device) + 0.5) / across).repeat(down)
    remaining, rows = maps.flatten(2).clone(), torch.arange(len(maps), device=maps.device)
    windows: list[list[RelativeBox]] = [[] for _ in maps]
    for _ in range(count):
        highest, index = remaining.flatten(1).max(dim=1)
        label, patch = index // len(x), index % len(x)
        left, top = _window_start(x[patch], window_size), _window_start(y[patch], window_size)
        for row in torch.nonzero(highest > -torch.inf)[:, 0].tolist():
            windows[row].append(_rounded_window(float(left[row]), float(top[row]), window_size))
        remaining[rows, label] = -torch.inf
        is_inside = _is_inside_window(x, left, window_size) & _is_inside_window(y, top, window_size)
        remaining.masked_fill_(is_inside[:, None], -torch.inf)
    return windows


def _window_start(center: Tensor, window_size: float) -> Tensor:
    """Return the left or top edge of a window around a center, shifted into the image."""
    return (center - window_size / 2).clamp(0, 1 - window_size)


def _is_inside_window(centers: Tensor, start: Tensor, window_size: float) -> Tensor:
    """Return a mask of the patch centers inside the windows along one axis, ``(n, p)``."""
    return (centers >= start[:, None]) & (centers <= start[:, None] + window_size)


def _rounded_window(left: float, top: float, window_size: float) -> RelativeBox:
    """Return the box of a window, rounded so that rounding errors do not change the cache key."""
    left, top = round(left, 4), round(top, 4)
    return left, top, min(round(left + window_size, 4), 1.0), min(round(top + window_size, 4), 1.0)
