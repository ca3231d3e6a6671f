"""Mask the highest scores of each image, independently of the order of the labels."""

import torch
from torch import Tensor


def mask_top_k(scores: Tensor, count: int) -> Tensor:
    """Return a mask of the ``count`` highest scores of each row, without incomplete ties.

    If only some of several equal scores would fit, none of them is marked. The mask therefore does
    not depend on the order of the labels, and equal scores stay equal. Ties are common among scores
    at the clipping limit of the log-odds.

    Args:
        scores: Scores, ``(n, c)``.
        count: Number of scores per row, >= 0. If ``count`` is ``c`` or more, all scores are marked.

    Returns:
        Boolean mask of the scores, ``(n, c)``.

    Example:
        >>> mask_top_k(torch.tensor([[3.0, 1.0, 1.0, 0.0]]), 2)
        tensor([[ True, False, False, False]])
    """
    if count >= scores.shape[1]:
        return torch.ones_like(scores, dtype=torch.bool)
    return scores > scores.topk(count + 1, dim=1).values[:, -1:]
