"""Refine patch scores by the self-attention of the encoder."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import InputError
from surelabel.shapes import check_shapes


def refine_by_attention(scores: Tensor, attention: Tensor, grid: tuple[int, int]) -> Tensor:
    """Average patch probabilities, weighted by attention, inside the box of each label.

        P = sigmoid(scores)        R = A P        R'_j = A (P_j inside the box of R_j)

    A is the attention, and P_j, R_j and R'_j are the maps of label j. The box of label j is the
    smallest rectangle around the patches at which R_j is at or above its mean. Outside the box, P_j
    is set to 0. The function returns the log-odds of R'.

    Args:
        scores: Log-odds of patches, row by row of the grid, ``(n, p, c)``.
        attention: Attention weights of each patch over all patches, which sum to 1, ``(n, p, p)``.
        grid: Numbers of rows and columns of the patch grid.

    Returns:
        Finite log-odds, ``(n, p, c)``. In single precision, log-odds above 15.9 are clipped. A
        constant map does not change otherwise.

    Raises:
        InputError: If the shapes do not match, or ``grid`` does not contain ``p`` patches.

    Source:
        TagCLIP (Lin et al., AAAI 2024), arXiv:2312.12828, as in the authors' code.

    Differs:
        There is one box per label; the authors' code has one box for each connected component above
        the mean, and excludes the last row and column. On Scenes, the restriction to the box has no
        effect. The rows of the attention are normalized to sum 1, and weights that are high in only
        a few layers are not set to zero. The computation uses logarithms relative to the highest
        probability of each label, so that no probability is rounded to 0.

    Example:
        >>> equal = torch.full((1, 2, 2), 0.5)
        >>> scores = torch.tensor([[[0.0, 2.0], [0.0, -2.0]]])
        >>> refine_by_attention(scores, equal, (1, 2)).round(decimals=4)
        tensor([[[0., 0.],
                 [0., 0.]]])
    """
    check_shapes(scores=(scores, "n p c"), attention=(attention, "n p p"))
    if grid[0] * grid[1] != scores.shape[1]:
        raise InputError(
            f"grid must contain {scores.shape[1]} patches (rows times columns); got {grid}."
        )
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    log_p = F.logsigmoid(scores)
    strongest = log_p.amax(dim=1, keepdim=True)
    share = (log_p - strongest).exp()
    attention = attention.to(share.dtype)
    mask = mask_refinement_box(attention @ share, grid)
    limits = torch.finfo(share.dtype)
    log_r = strongest + (attention @ (share * mask)).clamp_min(limits.tiny).log()
    not_p = F.logsigmoid(-scores).exp()
    not_r = attention @ torch.where(mask, not_p, 1.0)  # 1 - R' without cancellation
    return log_r.clamp_max(-limits.eps) - not_r.clamp(limits.eps, 1.0).log()


def mask_refinement_box(maps: Tensor, grid: tuple[int, int]) -> Tensor:
    """Return a mask of the smallest rectangle around the patches at or above the mean of a map.

    Args:
        maps: Values of patches, row by row of the grid, ``(n, p, c)``.
        grid: Numbers of rows and columns of the patch grid.

    Returns:
        Boolean mask, ``(n, p, c)``. If a map is constant, the mask is True everywhere.

    Example:
        >>> maps = torch.tensor([[[0.0], [3.0], [0.0], [3.0], [0.0]]])
        >>> mask_refinement_box(maps, (1, 5))[0, :, 0]
        tensor([False,  True,  True,  True, False])
    """
    threshold = torch.minimum(maps.mean(dim=1, keepdim=True), maps.amax(dim=1, keepdim=True))
    is_strong = (maps >= threshold).unflatten(1, grid)
    rows, columns = (
        _fill_refinement_box_mask(is_strong.any(dim=2)),
        _fill_refinement_box_mask(is_strong.any(dim=1)),
    )
    return (rows[:, :, None] & columns[:, None]).flatten(1, 2)


def _fill_refinement_box_mask(mask: Tensor) -> Tensor:
    """Fill a mask ``(n, length, c)`` from its first to its last True value along axis 1."""
    from_first = mask.int().cumsum(dim=1) > 0
    to_last = mask.int().flip(1).cumsum(dim=1).flip(1) > 0
    return from_first & to_last
