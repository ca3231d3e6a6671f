"""Which names of a picture are ahead of the others."""

import torch
from torch import Tensor


def ahead(scores: Tensor, count: int) -> Tensor:
    """The ``count`` greatest of each row; those that tie with one left out are left out too.

    So which names are marked never depends on the order of the names, and equal scores stay
    equal. Least so often: rows whose scores lie at the limit of the log-odds.

    Args:
        scores: ``(n, c)``.
        count: 0 or more; ``c`` or more marks all.

    Returns:
        True where marked, ``(n, c)``.

    Example:
        >>> ahead(torch.tensor([[3.0, 1.0, 1.0, 0.0]]), 2)
        tensor([[ True, False, False, False]])
    """
    if count >= scores.shape[1]:
        return torch.ones_like(scores, dtype=torch.bool)
    return scores > scores.topk(count + 1, dim=1).values[:, -1:]
