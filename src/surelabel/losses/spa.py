"""Compute the strictly proper asymmetric (SPA) loss for multi-label classification."""

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
    """Compute the SPA loss of each label, which is asymmetric and strictly proper.

        positive: softplus(-k_pos · (score - b_pos)) / zeta_pos
        negative: softplus(k_neg · (score - b_neg)) / zeta_neg
        loss:     y · positive + (1 - y) · negative

    In these formulas, y is the target. The scores are not log-odds. To convert scores to log-odds,
    use ``links.SPA`` with the same settings. The gradient is (p - y) times a positive weight, where
    p is the probability that is computed with ``links.SPA``. Therefore the expected loss is minimal
    if p equals the true probability.

    Args:
        scores: Finite scores of ``n`` images and ``c`` labels, ``(n, c)``.
        targets: Targets in [0, 1], where 1 is positive, ``(n, c)``.
        zeta_pos: Divisor of the loss of positives (zeta+), in [1e-6, 1e6].
        k_pos: Factor of the score in the loss of positives (k+), in [1e-6, 1e6].
        b_pos: Offset of the score in the loss of positives (b+), in [-1e6, 1e6].
        zeta_neg: Divisor of the loss of negatives (zeta-), in [1e-6, 1e6].
        k_neg: Factor of the score in the loss of negatives (k-), in [1e-6, 1e6].
        b_neg: Offset of the score in the loss of negatives (b-), in [-1e6, 1e6].

    Returns:
        Loss of each label, ``(n, c)``, without reduction. The type is float32, or float64 if
        ``scores`` is float64.

    Raises:
        InputError: If ``scores`` and ``targets`` differ in shape.
        ConfigError: If a setting is out of range.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        eq. 16. The default settings are those of section 5.1.

    Differs:
        For a graded target (between 0 and 1), the loss is the weighted mean of the two losses, so
        the expected loss is minimal if p equals the mean target. Scores are clipped to
        [-1e30, 1e30]. If all zeta and k are 1 and all b are 0, the loss equals ``binary``.

    Example:
        >>> spa(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]])).round(decimals=4)
        tensor([[0.6931, 0.0097]])
    """
    # the constructor of the link checks the settings
    SPA(zeta_pos=zeta_pos, k_pos=k_pos, b_pos=b_pos, zeta_neg=zeta_neg, k_neg=k_neg, b_neg=b_neg)
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    scores = scores.clip(-SCORE_LIMIT, SCORE_LIMIT)
    targets = targets.to(scores.dtype)
    positive = -F.logsigmoid(k_pos * (scores - b_pos)) / zeta_pos
    negative = -F.logsigmoid(-k_neg * (scores - b_neg)) / zeta_neg
    return targets * positive + (1 - targets) * negative
