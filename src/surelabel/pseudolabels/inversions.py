"""How often something absent scores above something present."""

import torch
from torch import Tensor

from surelabel.errors import InputError
from surelabel.pseudolabels.checked import of_pictures
from surelabel.shapes import check_shapes


def inversions_within_pictures(scores: Tensor, targets: Tensor) -> Tensor:
    """Count, for each picture, the pairs of an absent name above a present one.

        Σ over present j, absent k of [z_k > z_j]

    Args:
        scores: Of anything that only needs an order, ``(n, c)``.
        targets: 1 where present, 0 where absent, ``(n, c)``.

    Returns:
        Whole numbers, ``(n,)``. Equal scores are no inversion.

    Raises:
        InputError: shapes differ, a score is not finite, or a target is neither 0 nor 1.

    Source:
        TailorCLIP, arXiv:2606.11626, section 4.3.4, table 6.

    Differs:
        The paper does not say whether its pairs are names of a picture or pictures of a name; the
        other is :func:`inversions_within_labels`.

    Example:
        >>> scores = torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
        >>> inversions_within_pictures(scores, torch.tensor([[1, 0, 0], [0, 0, 1]]))
        tensor([0, 2])
    """
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    z = of_pictures(scores)
    present = targets == 1
    if not (present | (targets == 0)).all():
        raise InputError("targets must be 0 or 1 to count inversions; round graded ones first.")
    absent = z.masked_fill(present, -torch.inf).sort(dim=1).values
    above = z.shape[1] - torch.searchsorted(absent, z.contiguous(), right=True)
    return above.masked_fill(~present, 0).sum(dim=1)


def inversions_within_labels(scores: Tensor, targets: Tensor) -> Tensor:
    """Count, for each name, the pairs of a picture without it above a picture with it.

        Σ over pictures i with, k without the name of [z_k > z_i]

    Args:
        scores: Of anything that only needs an order, ``(n, c)``.
        targets: 1 where present, 0 where absent, ``(n, c)``.

    Returns:
        Whole numbers, ``(c,)``. Equal scores are no inversion.

    Raises:
        InputError: shapes differ, a score is not finite, or a target is neither 0 nor 1.

    Source:
        TailorCLIP, arXiv:2606.11626, section 4.3.4, table 6.

    Example:
        >>> scores = torch.tensor([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0]])
        >>> inversions_within_labels(scores, torch.tensor([[1, 1], [0, 0], [0, 0]]))
        tensor([0, 2])
    """
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    return inversions_within_pictures(of_pictures(scores).T, targets.T)
