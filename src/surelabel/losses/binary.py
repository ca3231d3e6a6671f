"""Compute the binary cross-entropy with logits."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.shapes import check_shapes


def binary(scores: Tensor, targets: Tensor) -> Tensor:
    """Compute the binary cross-entropy of each label, with the scores as logits.

        -y · log(p) - (1 - y) · log(1 - p),   p = sigmoid(score)

    In this formula, y is the target.

    Args:
        scores: Finite scores of ``n`` images and ``c`` labels, ``(n, c)``.
        targets: Targets in [0, 1], where 1 is positive, ``(n, c)``.

    Returns:
        Loss of each label in nats, ``(n, c)``, without reduction. The type is float32, or float64
        if ``scores`` is float64.

    Raises:
        InputError: If ``scores`` and ``targets`` differ in shape.

    Source:
        Good, Rational Decisions, Journal of the Royal Statistical Society B, 1952 (log score).

    Example:
        >>> binary(torch.tensor([[0.0, 3.0]]), torch.tensor([[1.0, 0.0]])).round(decimals=4)
        tensor([[0.6931, 3.0486]])
    """
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return F.binary_cross_entropy_with_logits(scores, targets.to(scores.dtype), reduction="none")
