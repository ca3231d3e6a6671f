"""Average patch vectors over neighbouring patches."""

import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import InputError
from surelabel.shapes import check_shapes


def pool_neighbouring_patches(
    patches: Tensor, grid: tuple[int, int], *, window: float = 0.2
) -> Tensor:
    """Return the normalized mean vector of each patch and its neighbours.

    Args:
        patches: Unit vectors, row by row of the grid, ``(n, p, d)``.
        grid: Numbers of rows and columns of the patch grid.
        window: Height and width of the neighbourhood, as fractions of the image, in [0, 1]. Height
            and width are rounded to the nearest odd number of patches. If 0, the patches are
            unchanged.

    Returns:
        Unit vectors, ``(n, p, d)``. At the border of the image the neighbourhood is smaller.

    Raises:
        InputError: If ``grid`` does not contain ``p`` patches.

    Source:
        None; ours.

    Example:
        >>> import torch
        >>> row = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
        >>> pool_neighbouring_patches(row, (1, 3), window=1.0).round(decimals=3)
        tensor([[[1.0000, 0.0000],
                 [0.8940, 0.4470],
                 [0.7070, 0.7070]]])
    """
    sizes = check_shapes(patches=(patches, "n p d"))
    if grid[0] * grid[1] != sizes["p"]:
        raise InputError(
            f"grid must contain {sizes['p']} patches (rows times columns); got {grid}."
        )
    down, across = (_odd_patch_pooling_size(window * cells) for cells in grid)
    if down == across == 1:
        return patches
    maps = patches.transpose(1, 2).unflatten(2, grid)
    padding = (down // 2, across // 2)  # zero vectors do not change the direction of the mean
    means = F.avg_pool2d(maps, (down, across), stride=1, padding=padding)
    return F.normalize(means.flatten(2).transpose(1, 2), dim=-1)


def _odd_patch_pooling_size(cells: float) -> int:
    return max(2 * round((cells - 1) / 2) + 1, 1)
