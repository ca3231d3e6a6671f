"""The patches that are clearest of each name."""

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes


def clearest(classes: Tensor, entropy: Tensor, *, count: int) -> Tensor:
    """Rows of lowest entropy of each class.

    Args:
        classes: Which class comes first at each row, ``(r,)``, whole numbers.
        entropy: How unclear that is, ``(r,)``; earlier rows first among equals.
        count: Rows a class gets at most, 1 or more.

    Returns:
        Row numbers, rising, ``(m,)``.

    Raises:
        InputError: shapes differ.
        ConfigError: ``count`` is below 1.

    Source:
        PIAA (ICML 2026), as its authors' code has it, github.com/akang-wang/PIAA.

    Example:
        >>> entropy = torch.tensor([0.3, 0.1, 0.2, 0.9])
        >>> clearest(torch.tensor([0, 0, 0, 7]), entropy, count=2)
        tensor([1, 2, 3])
    """
    check_shapes(classes=(classes, "r"), entropy=(entropy, "r"))
    if count < 1:
        raise ConfigError(f"count must be 1 or more, patches kept for each name. Got {count}.")
    order = entropy.argsort(stable=True)
    order = order[classes[order].argsort(stable=True)]
    _, sizes = torch.unique_consecutive(classes[order], return_counts=True)
    starts = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    rank = torch.arange(len(order), device=order.device) - starts
    return order[rank < count].sort().values


def above_the_rest(scores: Tensor, classes: Tensor, *, count: int) -> Tensor:
    """Which rows are at least one deviation above the mean of their class.

    Args:
        scores: ``(m,)``.
        classes: Of each row, ``(m,)``, whole numbers below ``count``.
        count: How many classes there are.

    Returns:
        Flags ``(m,)``; True for all rows of a class that are the same.

    Source:
        PIAA (ICML 2026), as its authors' code has it, github.com/akang-wang/PIAA.

    Example:
        >>> above_the_rest(torch.tensor([1.0, 1.0, 4.0, 7.0]), torch.tensor([0, 0, 0, 1]), count=2)
        tensor([False, False,  True,  True])
    """
    check_shapes(scores=(scores, "m"), classes=(classes, "m"))
    scores = scores.double()
    sizes = torch.bincount(classes, minlength=count).clamp(min=1)
    mean = torch.zeros(count, dtype=scores.dtype).index_add_(0, classes, scores) / sizes
    apart = scores - mean[classes]
    variance = torch.zeros(count, dtype=scores.dtype).index_add_(0, classes, apart**2) / sizes
    return apart >= variance.sqrt()[classes] - 1e-9 * scores.abs()
