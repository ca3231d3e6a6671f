"""Compute the pseudo-labels of CCD: probabilities divided by the mean confidence of each label."""

import math

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.pseudolabels.targets.input_validation import (
    check_pseudolabel_share,
    split_pseudolabel_views,
)


def ccd(
    scores: Tensor,
    *,
    floor: float = 0.05,
    entropy_limit: float = 2.0,
    image_weight: float = 0.2,
) -> Tensor:
    """Divide each probability by the mean confidence of its label.

        b_j = mean of p_ij over images with most probable label j and entropy <= entropy_limit
        y_ij = min(max(p_ij, floor) / b_j, 1)
        with parts: y <- min(w · y + (1 - w) · max(max_k p^k, floor) / b, 1)    w = image_weight

    p_ij is the probability of label j in image i, y_ij the target, p^k the probabilities in part k,
    and b_j the mean confidence of label j. The targets of an image depend on all images, because
    b_j is a mean over images.

    Args:
        scores: Log-odds of a softmax over the labels, of whole images ``(n, c)``, or of whole
            images followed by their parts ``(n, t, c)``.
        floor: Lower limit of the probabilities, in [0, 1).
        entropy_limit: Largest entropy of an image that is used for the mean confidence, in nats,
            >= 0.
        image_weight: Weight of the targets of the whole image, in [0, 1). The parts have the
            remaining weight.

    Returns:
        Targets in [0, 1], ``(n, c)``, in float32 or wider.

    Raises:
        InputError: If ``scores`` are neither ``(n, c)`` nor ``(n, t, c)``, or a score is not
            finite.
        ConfigError: If a setting is out of range.

    Source:
        CCD, CVPR 2025, as in its authors' code, github.com/k0u-id/CCD.

    Differs:
        The parts can be any views; the authors crop parts around high activations of a student. If
        no image contributes to the mean confidence b of a label, b is 1; the authors' code divides
        zero by zero. If several labels of an image have the highest probability, each of them is
        treated as the most probable label.

    Example:
        >>> p = torch.tensor([[0.80, 0.15, 0.05], [0.60, 0.30, 0.10], [0.10, 0.50, 0.40]])
        >>> ccd(p.logit()).round(decimals=4)
        tensor([[1.0000, 0.3000, 0.0500],
                [0.8571, 0.6000, 0.1000],
                [0.1429, 1.0000, 0.4000]])
    """
    check_pseudolabel_share("floor", floor)
    check_pseudolabel_share("image_weight", image_weight)
    if not 0 <= entropy_limit < math.inf:
        raise ConfigError(f"entropy_limit must be in [0, inf) nats; got {entropy_limit!r}.")
    whole, parts = split_pseudolabel_views(scores)
    confidence = _ccd_mean_confidence(whole.sigmoid(), entropy_limit)
    targets = (whole.sigmoid().clamp(min=floor) / confidence).clamp(max=1)
    if parts is None:
        return targets
    part_targets = parts.amax(dim=1).sigmoid().clamp(min=floor) / confidence
    return (image_weight * targets + (1 - image_weight) * part_targets).clamp(max=1)


def _ccd_mean_confidence(p: Tensor, entropy_limit: float) -> Tensor:
    """Return the mean confidence of each label, or 1 if no image contributes to it, ``(c,)``."""
    has_low_entropy = torch.special.entr(p).sum(dim=1, keepdim=True) <= entropy_limit
    is_highest = (p == p.amax(dim=1, keepdim=True)) & has_low_entropy
    count, total = is_highest.sum(dim=0), torch.where(is_highest, p, 0.0).sum(dim=0)
    is_defined = (count > 0) & (total > 0)
    return torch.where(is_defined, total, 1.0) / torch.where(is_defined, count, 1)
