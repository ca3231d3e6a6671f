"""Patches and those around them: a patch is smaller than what it shows."""

import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import InputError
from surelabel.shapes import check_shapes


def neighbourhoods(patches: Tensor, grid: tuple[int, int], *, window: float = 0.2) -> Tensor:
    """The direction of each patch and its neighbours together.

    Args:
        patches: Unit vectors, row by row of the grid, ``(n, p, d)``.
        grid: Patches down and across.
        window: Height and width of what is looked at around a patch, as shares of the picture's, in
            [0, 1]; the nearest odd number of patches, so that 0 leaves each alone.

    Returns:
        Unit vectors ``(n, p, d)``; at the edge of those neighbours that there are.

    Raises:
        InputError: ``grid`` does not hold ``p`` patches.

    Source:
        none; ours.

    Example:
        >>> import torch
        >>> row = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
        >>> neighbourhoods(row, (1, 3), window=1.0).round(decimals=3)
        tensor([[[1.0000, 0.0000],
                 [0.8940, 0.4470],
                 [0.7070, 0.7070]]])
    """
    sizes = check_shapes(patches=(patches, "n p d"))
    if grid[0] * grid[1] != sizes["p"]:
        raise InputError(f"grid must hold all {sizes['p']} patches, down times across. Got {grid}.")
    down, across = (_odd(window * cells) for cells in grid)
    if down == across == 1:
        return patches
    maps = patches.transpose(1, 2).unflatten(2, grid)
    around = (down // 2, across // 2)
    means = F.avg_pool2d(maps, (down, across), stride=1, padding=around)  # 0 around: no direction
    return F.normalize(means.flatten(2).transpose(1, 2), dim=-1)


def _odd(cells: float) -> int:
    """The nearest odd number, 1 at least."""
    return max(2 * round((cells - 1) / 2) + 1, 1)
