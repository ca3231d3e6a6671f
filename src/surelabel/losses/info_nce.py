"""Compute InfoNCE with several positives, a softmax cross-entropy over the labels of each image."""

import math

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.links.spa import SCORE_LIMIT
from surelabel.shapes import check_shapes

MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-6, 1e6


def info_nce(scores: Tensor, targets: Tensor, known: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Compute the InfoNCE loss: the softmax cross-entropy over the labels of each image.

        loss of an image:  -Σ y · log(q) / Σ y,   q = softmax of score / T over known labels
        loss:              mean over images with a positive

    In these formulas, y is the target, T is the temperature, and the sums are over the known labels
    of the image. The gradient of the loss of an image is (q - y / Σ y) / T, so at the minimum all
    positives of an image have equal scores. A constant added to all scores of an image does not
    change the loss, so no link converts the scores to log-odds. In contrast to ``info_nce``,
    ``multi_matching`` computes one softmax over all images of a batch.

    Args:
        scores: Finite scores of ``n`` images and ``c`` labels, ``(n, c)``.
        targets: Targets in [0, 1], where 1 is positive, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``; unknown targets are ignored.
        temperature: Divisor of the scores (tau), in [1e-6, 1e6].

    Returns:
        Loss in nats, a scalar. If the batch has no positive, the loss is 0. The type is float32, or
        float64 if ``scores`` is float64.

    Raises:
        InputError: If ``scores``, ``targets`` and ``known`` differ in shape.
        ConfigError: If ``temperature`` is out of range.

    Source:
        van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018,
        arXiv:1807.03748; with several positives as "MMC without batch" in table 10 of
        Recover and Match, CVPR 2025, arXiv:2503.15337.

    Differs:
        Labels with an unknown target are excluded from the softmax. Graded targets (between 0 and
        1) are divided by their sum, like all targets. The weight of an image in the mean over
        images is the largest target of the image. Scores are clipped to [-1e30, 1e30].

    Example:
        >>> scores, targets = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0]])
        >>> info_nce(scores, targets, torch.ones(1, 2, dtype=torch.bool)).round(decimals=4)
        tensor(0.1269)
    """
    if not (math.isfinite(temperature) and MIN_TEMPERATURE <= temperature <= MAX_TEMPERATURE):
        raise ConfigError(
            f"temperature must be in [{MIN_TEMPERATURE}, {MAX_TEMPERATURE:.0f}]; got "
            f"{temperature}. Use 1 for no effect."
        )
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"), known=(known, "n c"))
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if not scores.numel():
        return scores.sum()
    scores = scores.clip(-SCORE_LIMIT, SCORE_LIMIT) / temperature
    known_targets = torch.where(known, targets.to(scores.dtype), 0.0)
    tiny = torch.finfo(scores.dtype).tiny
    positive_shares = known_targets / known_targets.sum(1, keepdim=True).clamp(min=tiny)
    in_softmax = known | ~known.any(1, keepdim=True)  # keeps images without known labels finite
    log_partition = torch.where(in_softmax, scores, -torch.inf).logsumexp(1, keepdim=True)
    image_losses = (positive_shares * (log_partition - scores)).sum(1)
    image_weights = known_targets.amax(1)
    return (image_weights * image_losses).sum() / image_weights.sum().clamp(min=tiny)
