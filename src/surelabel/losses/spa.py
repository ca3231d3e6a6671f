"""The strictly proper asymmetric loss for multi-label recognition."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.links import SPA
from surelabel.links.spa import SCORE_LIMIT
from surelabel.shapes import check_shapes


def spa(
    scores: Tensor,
    targets: Tensor,
    *,
    zeta_pos: float = 1.0,
    k_pos: float = 1.0,
    b_pos: float = 0.0,
    zeta_neg: float = 5.0,
    k_neg: float = 3.0,
    b_neg: float = 1.0,
) -> Tensor:
    """Push down negatives less than positives are pushed up, and still learn true probabilities.

        positive: softplus(-k_pos · (score - b_pos)) / zeta_pos
        negative: softplus(k_neg · (score - b_neg)) / zeta_neg
        loss:     y · positive + (1 - y) · negative

    Its scores are not log-odds: ``links.SPA`` with the same settings makes them so. The gradient
    is (p - y) times a weight above 0, with p the probability through that link.

    Args:
        scores: Of the method, ``(n, c)``, any finite number.
        targets: 1 where the label is present, 0 where absent, in [0, 1], ``(n, c)``.
        zeta_pos: What the loss of positives is divided by (zeta+), in [1e-6, 1e6].
        k_pos: Slope of the loss of positives (k+), in [1e-6, 1e6].
        b_pos: Score where the loss of positives bends (b+), in [-1e6, 1e6].
        zeta_neg: What the loss of negatives is divided by (zeta-), in [1e-6, 1e6].
        k_neg: Slope of the loss of negatives (k-), in [1e-6, 1e6].
        b_neg: Score where the loss of negatives bends (b-), in [-1e6, 1e6].

    Returns:
        The loss of every element, ``(n, c)``, float32 at least. Nothing is summed.

    Raises:
        InputError: ``scores`` and ``targets`` differ in shape.
        ConfigError: a setting is out of its range.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        eq. 16; defaults of section 5.1.

    Differs:
        Graded targets mix the two losses, which keeps the true mean target the best answer.
        Scores beyond 1e30 count as 1e30. With all scales and slopes 1 and no shift it is
        ``binary``.

    Example:
        >>> spa(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]])).round(decimals=4)
        tensor([[0.6931, 0.0097]])
    """
    SPA(zeta_pos=zeta_pos, k_pos=k_pos, b_pos=b_pos, zeta_neg=zeta_neg, k_neg=k_neg, b_neg=b_neg)
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    scores = scores.clip(-SCORE_LIMIT, SCORE_LIMIT)
    targets = targets.to(scores.dtype)
    positive = -F.logsigmoid(k_pos * (scores - b_pos)) / zeta_pos
    negative = -F.logsigmoid(-k_neg * (scores - b_neg)) / zeta_neg
    return targets * positive + (1 - targets) * negative
