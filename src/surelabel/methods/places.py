"""Where to look again: the places that say the most, each as the middle of a window."""

import torch
from torch import Tensor

from surelabel.shapes import check_shapes

Part = tuple[float, float, float, float]


def telling_places(maps: Tensor, *, count: int, part: float) -> list[list[Part]]:
    """Windows around the strongest places of pictures, each for another name and elsewhere.

    The first window has the strongest place of all names in its middle, or as near to it as the
    edge lets it; each further one the strongest place that no window holds yet, of the names that
    had none.

    Args:
        maps: How strong each name is at each place, ``(n, c, down, across)``.
        count: How many windows a picture has at most.
        part: Width and height of a window as shares of the picture's, in (0, 1].

    Returns:
        For each picture left, top, right and bottom of its windows, as shares in [0, 1]; fewer
        than ``count`` where names or places ran out before.

    Source:
        none; ours, in place of one box for each strong name as in TagCLIP (Lin et al., AAAI 2024).

    Example:
        >>> maps = torch.tensor([[[[0.0, 0.0, 1.0, 2.0]], [[0.0, 1.0, 0.0, 0.0]]]])
        >>> telling_places(maps, count=2, part=0.5)
        [[(0.5, 0.25, 1.0, 0.75), (0.125, 0.25, 0.625, 0.75)]]
    """
    sizes = check_shapes(maps=(maps, "n c down across"))
    down, across = sizes["down"], sizes["across"]
    y = ((torch.arange(down, device=maps.device) + 0.5) / down).repeat_interleave(across)
    x = ((torch.arange(across, device=maps.device) + 0.5) / across).repeat(down)
    left_over, rows = maps.flatten(2).clone(), torch.arange(len(maps), device=maps.device)
    found: list[list[Part]] = [[] for _ in maps]
    for _ in range(count):
        best, at = left_over.flatten(1).max(dim=1)
        name, place = at // len(x), at % len(x)
        left, top = _start(x[place], part), _start(y[place], part)
        for row in torch.nonzero(best > -torch.inf)[:, 0].tolist():
            found[row].append(_window(float(left[row]), float(top[row]), part))
        left_over[rows, name] = -torch.inf
        held = _held(x, left, part) & _held(y, top, part)
        left_over.masked_fill_(held[:, None], -torch.inf)
    return found


def _start(middle: Tensor, part: float) -> Tensor:
    """Where a window begins that lies around its middle, inside the picture."""
    return (middle - part / 2).clamp(0, 1 - part)


def _held(middles: Tensor, start: Tensor, part: float) -> Tensor:
    """Which places the windows hold, ``(n, p)``."""
    return (middles >= start[:, None]) & (middles <= start[:, None] + part)


def _window(left: float, top: float, part: float) -> Part:
    left, top = round(left, 4), round(top, 4)  # names of windows stay the same where sums do not
    return left, top, min(round(left + part, 4), 1.0), min(round(top + part, 4), 1.0)
