"""Binary cross-entropy, one label at a time."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.shapes import check_shapes


def binary(scores: Tensor, targets: Tensor) -> Tensor:
    """Charge every label the surprise at its target, taking scores as log-odds.

        -y · log(p) - (1 - y) · log(1 - p),   p = sigmoid(score)

    Args:
        scores: Of the method, ``(n, c)``, any finite number.
        targets: 1 where the label is present, 0 where absent, in [0, 1], ``(n, c)``.

    Returns:
        The loss of every element, ``(n, c)``, in nats, float32 at least. Nothing is summed.

    Raises:
        InputError: ``scores`` and ``targets`` differ in shape.

    Source:
        Good, Rational Decisions, Journal of the Royal Statistical Society B, 1952 (log score).

    Example:
        >>> binary(torch.tensor([[0.0, 3.0]]), torch.tensor([[1.0, 0.0]])).round(decimals=4)
        tensor([[0.6931, 3.0486]])
    """
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return F.binary_cross_entropy_with_logits(scores, targets.to(scores.dtype), reduction="none")
