"""Pseudo-labels of CDUL: mean of the whole image and its best or worst part."""

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.pseudolabels.targets.input_validation import split_pseudolabel_views


def cdul(scores: Tensor, *, threshold: float = 0.5) -> Tensor:
    """Average the image with its best part if the part reaches a threshold, else with its worst.

        y = (p0 + a) / 2     a = max_k p^k if it is at least the threshold, else min_k p^k

    p0 is the probability of a label in the whole image, and p^k the probability in part k.

    Args:
        scores: Log-odds of whole images ``(n, c)``, or of whole images followed by their parts
            ``(n, t, c)``. If there are no parts, the targets are the probabilities of the whole
            images.
        threshold: Probability from which a part counts as positive (zeta), in [0, 1].

    Returns:
        Targets in [0, 1], ``(n, c)``, in float32 or wider.

    Raises:
        InputError: If ``scores`` are neither ``(n, c)`` nor ``(n, t, c)``, or a score is not
            finite.
        ConfigError: If ``threshold`` is outside [0, 1].

    Source:
        Abdelfattah et al., CDUL: CLIP-Driven Unsupervised Learning for Multi-Label Image
        Classification, ICCV 2023, arXiv:2307.16634.

    Differs:
        A threshold above all probabilities selects the worst part of every label, so it must fit
        the temperature of the softmax. With the cached scores of a public reproduction, whose
        softmax is nearly flat, 0.1 is already above them.

    Example:
        >>> cdul(torch.tensor([[[0.0, 0.0], [2.0, -2.0], [-2.0, -4.0]]])).round(decimals=4)
        tensor([[0.6904, 0.2590]])
    """
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold must be in [0, 1]; got {threshold!r}.")
    whole, parts = split_pseudolabel_views(scores)
    if parts is None:
        return whole.sigmoid()
    best, worst = parts.amax(dim=1).sigmoid(), parts.amin(dim=1).sigmoid()
    return (whole.sigmoid() + torch.where(best >= threshold, best, worst)) / 2
