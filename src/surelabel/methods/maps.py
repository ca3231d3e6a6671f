"""Where each name is strong: scores of patches, spread along the attention of the encoder."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import InputError
from surelabel.shapes import check_shapes


def refined(scores: Tensor, attention: Tensor, grid: tuple[int, int]) -> Tensor:
    """Let patches that look at each other agree, each name within the box where it is strong.

        P = sigmoid(scores)        R = A P        R'_j = A (P_j inside the box of R_j)

    The box of a name is the least rectangle around the patches whose R is above its mean.

    Args:
        scores: Log-odds of patches, row by row of the grid, ``(n, p, c)``.
        attention: How much each patch looks at each, rows of sum 1, ``(n, p, p)``.
        grid: Patches down and across.

    Returns:
        Log-odds ``(n, p, c)``, finite; a map that is the same everywhere stays as it is.

    Raises:
        InputError: shapes do not fit, or ``grid`` does not hold ``p`` patches.

    Source:
        TagCLIP (Lin et al., AAAI 2024), arXiv:2312.12828, as the authors' code has it.

    Differs:
        One box a name, where the code has one for each piece above the mean and cuts off the last
        row and column. On Scenes the box changes nothing. Rows of the attention have sum 1, and
        entries that are strong in few layers are not zeroed. All in logarithms, each name against
        its strongest patch, so that no probability becomes 0.

    Example:
        >>> even = torch.full((1, 2, 2), 0.5)
        >>> refined(torch.tensor([[[0.0, 2.0], [0.0, -2.0]]]), even, (1, 2)).round(decimals=4)
        tensor([[[0., 0.],
                 [0., 0.]]])
    """
    check_shapes(scores=(scores, "n p c"), attention=(attention, "n p p"))
    if grid[0] * grid[1] != scores.shape[1]:
        raise InputError(
            f"grid must hold all {scores.shape[1]} patches, down times across. Got {grid}."
        )
    log_p = F.logsigmoid(scores.to(torch.promote_types(scores.dtype, torch.float32)))
    strongest = log_p.amax(dim=1, keepdim=True)
    share = (log_p - strongest).exp()
    attention = attention.to(share.dtype)
    inside = attention @ (share * in_box(attention @ share, grid))
    smallest = torch.finfo(share.dtype)
    log_r = strongest + inside.clamp_min(smallest.tiny).log()
    log_r = log_r.clamp_max(-smallest.eps)  # rounding may lift a mean of ones above 1
    return log_r - torch.log(-torch.expm1(log_r))


def in_box(maps: Tensor, grid: tuple[int, int]) -> Tensor:
    """True inside the least rectangle around what is at least the mean of its map.

    Args:
        maps: ``(n, p, c)``.
        grid: Patches down and across.

    Returns:
        ``(n, p, c)``; everywhere where a map is the same everywhere.

    Example:
        >>> in_box(torch.tensor([[[0.0], [3.0], [0.0], [3.0], [0.0]]]), (1, 5))[0, :, 0]
        tensor([False,  True,  True,  True, False])
    """
    level = torch.minimum(maps.mean(dim=1, keepdim=True), maps.amax(dim=1, keepdim=True))
    strong = (maps >= level).unflatten(1, grid)
    rows, columns = _first_to_last(strong.any(dim=2)), _first_to_last(strong.any(dim=1))
    return (rows[:, :, None] & columns[:, None]).flatten(1, 2)


def _first_to_last(strong: Tensor) -> Tensor:
    """True from the first to the last True of each column, ``(n, length, c)``."""
    begun = strong.int().cummax(dim=1).values
    not_over = strong.int().flip(1).cummax(dim=1).values.flip(1)
    return (begun & not_over).bool()
