"""Pseudo-labels from the whole picture and from the best, or worst, of its parts."""

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.pseudolabels.checked import whole_and_parts


def cdul(scores: Tensor, *, threshold: float = 0.5) -> Tensor:
    """Average the picture with its best part where that is sure, with its worst where it is not.

        y = (p0 + a) / 2     a = max_k p^k where it reaches the threshold, min_k p^k elsewhere

    Args:
        scores: Log-odds, of whole pictures ``(n, c)`` or with their parts behind them
            ``(n, t, c)``. Without parts the targets are the probabilities.
        threshold: Probability from which a part shows a name (zeta), in [0, 1].

    Returns:
        Targets in [0, 1], ``(n, c)``, in float32 or finer.

    Raises:
        InputError: ``scores`` have another shape, or one is not finite.
        ConfigError: ``threshold`` is outside [0, 1].

    Source:
        Abdelfattah et al., CDUL: CLIP-Driven Unsupervised Learning for Multi-Label Image
        Classification, ICCV 2023, arXiv:2307.16634.

    Differs:
        A threshold above all probabilities takes the worst part of every name, so it must fit the
        temperature of the softmax: with the cached scores of a public reproduction, whose softmax
        is nearly flat, 0.1 does that.

    Example:
        >>> cdul(torch.tensor([[[0.0, 0.0], [2.0, -2.0], [-2.0, -4.0]]])).round(decimals=4)
        tensor([[0.6904, 0.2590]])
    """
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold must be a probability in [0, 1]. Got {threshold!r}.")
    whole, parts = whole_and_parts(scores)
    if parts is None:
        return whole.sigmoid()
    best, worst = parts.amax(dim=1).sigmoid(), parts.amin(dim=1).sigmoid()
    return (whole.sigmoid() + torch.where(best >= threshold, best, worst)) / 2
