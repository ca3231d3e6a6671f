"""Select the patches that represent each class."""

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes


def select_patches(classes: Tensor, entropy: Tensor, *, count: int) -> Tensor:
    """Return the row numbers of the patches with the lowest entropy of each class.

    Args:
        classes: Most probable class of each of r patches, as a whole number, ``(r,)``.
        entropy: Entropy of the class probabilities of each patch, ``(r,)``. If values are equal,
            the earlier row is selected.
        count: Largest number of patches per class, >= 1.

    Returns:
        Row numbers of the m selected patches, in ascending order, ``(m,)``.

    Raises:
        InputError: If the shapes differ.
        ConfigError: If ``count`` is below 1.

    Source:
        PIAA (ICML 2026), as in its authors' code, github.com/akang-wang/PIAA.

    Example:
        >>> entropy = torch.tensor([0.3, 0.1, 0.2, 0.9])
        >>> select_patches(torch.tensor([0, 0, 0, 7]), entropy, count=2)
        tensor([1, 2, 3])
    """
    check_shapes(classes=(classes, "r"), entropy=(entropy, "r"))
    if count < 1:
        raise ConfigError(
            f"count, the number of patches per class, must be 1 or more; got {count}."
        )
    order = entropy.argsort(stable=True)
    order = order[classes[order].argsort(stable=True)]
    _, sizes = torch.unique_consecutive(classes[order], return_counts=True)
    starts = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    rank = torch.arange(len(order), device=order.device) - starts
    return order[rank < count].sort().values


def select_high_scoring_patches(scores: Tensor, classes: Tensor, *, count: int) -> Tensor:
    """Return a mask of scores at least one standard deviation above the mean of their class.

    Args:
        scores: Scores, ``(m,)``.
        classes: Class of each score, whole numbers below ``count``, ``(m,)``.
        count: Number of classes.

    Returns:
        Boolean mask, ``(m,)``. If all scores of a class are equal, the mask is True for the class.

    Source:
        PIAA (ICML 2026), as in its authors' code, github.com/akang-wang/PIAA.

    Example:
        >>> classes = torch.tensor([0, 0, 0, 1])
        >>> select_high_scoring_patches(torch.tensor([1.0, 1.0, 4.0, 7.0]), classes, count=2)
        tensor([False, False,  True,  True])
    """
    check_shapes(scores=(scores, "m"), classes=(classes, "m"))
    scores = scores.double()
    sizes = torch.bincount(classes, minlength=count).clamp(min=1)
    mean = torch.zeros(count, dtype=scores.dtype).index_add_(0, classes, scores) / sizes
    centred = scores - mean[classes]
    variance = torch.zeros(count, dtype=scores.dtype).index_add_(0, classes, centred**2) / sizes
    rounding = 1e-9 * scores.abs()
    return centred >= variance.sqrt()[classes] - rounding
