"""Compute the pseudo-labels of CDUL: the mean probability of the whole image and one part."""

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.pseudolabels.targets.input_validation import split_pseudolabel_views


def cdul(scores: Tensor, *, threshold: float = 0.5) -> Tensor:
    """Average the probabilities of the whole image and of its highest- or lowest-scoring part.

        y = (p0 + a) / 2     a = max_k p^k if it is at least the threshold, else min_k p^k

    p0 is the probability of a label in the whole image, p^k the probability in part k, a the
    probability that is averaged with p0, and y the target.

    Args:
        scores: Log-odds of whole images ``(n, c)``, or of whole images followed by their parts
            ``(n, t, c)``. If there are no parts, the targets are the probabilities of the whole
            images.
        threshold: Smallest probability of the highest-scoring part at which this part is used (zeta
            in the paper), in [0, 1].

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
        If the threshold is above all probabilities, the lowest-scoring part is used for every
        label. The threshold must therefore match the temperature of the softmax. In the cached
        scores of a public reproduction (github.com/cs-mshah/CDUL), the softmax is nearly uniform,
        and a threshold of 0.1 is already above all probabilities.

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
