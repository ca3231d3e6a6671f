"""Compute the asymmetric loss for multi-label classification; a special case is the focal loss."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.links.focal import FocalVariant, check_focal_link_settings
from surelabel.links.spa import SCORE_LIMIT
from surelabel.shapes import check_shapes


def asymmetric(
    scores: Tensor,
    targets: Tensor,
    *,
    gamma_pos: float = 0.0,
    gamma_neg: float = 4.0,
    clip: float = 0.05,
    variant: FocalVariant = "paper",
) -> Tensor:
    """Compute the asymmetric loss of each label: easy negatives have a small or zero loss.

        positive: -(1 - q)^gamma_pos · log(q)          q = sigmoid(score)
        negative: -u^gamma_neg · log(1 - u)            u = max(q - clip, 0)
        loss:     y · positive + (1 - y) · negative

    In these formulas, y is the target. The scores are not log-odds. To convert scores to log-odds,
    use ``links.Focal`` with the same settings. If ``gamma_pos`` equals ``gamma_neg`` and ``clip``
    is 0, the asymmetric loss equals the focal loss.

    Args:
        scores: Finite scores of ``n`` images and ``c`` labels, ``(n, c)``.
        targets: Targets in [0, 1], where 1 is positive, ``(n, c)``.
        gamma_pos: Focusing parameter (exponent) of positives (gamma+), >= 0.
        gamma_neg: Focusing parameter (exponent) of negatives (gamma-), >= 0.
        clip: Threshold (m), in [0, 1). If sigmoid(score) is at most ``clip``, the loss of a
            negative is 0.
        variant: "paper" propagates the gradient through the focusing weights (1 - q)^gamma_pos and
            u^gamma_neg. "code" treats the focusing weights as constants, which changes the gradient
            and the link, but not the value of the loss.

    Returns:
        Loss of each label in nats, ``(n, c)``, without reduction. The type is float32, or float64
        if ``scores`` is float64.

    Raises:
        InputError: If ``scores`` and ``targets`` differ in shape.
        ConfigError: If a setting is out of range.

    Source:
        Ridnik et al., Asymmetric Loss For Multi-Label Classification, ICCV 2021,
        arXiv:2009.14119; in the form of eq. 8 of Cheng and Vasconcelos, Towards Calibrated
        Multi-label Deep Neural Networks, CVPR 2024.

    Differs:
        The default variant is "paper". The training script of Ridnik et al. detaches the focusing
        weights, as the variant "code" does. The loss is computed in log space, so a confident wrong
        prediction has a gradient. In the code of Ridnik et al., clamping at 1e-8 sets this gradient
        to 0. For a graded target (between 0 and 1), the loss is the weighted mean of the
        two losses. The code of Ridnik et al. is correct for targets of 0 and 1 only. Scores are
        clipped to [-1e30, 1e30]. The function returns the loss of each label, but the code of
        Ridnik et al. returns the sum.

    Example:
        >>> asymmetric(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]])).round(decimals=4)
        tensor([[0.6931, 0.0245]])
    """
    check_focal_link_settings(gamma_pos, gamma_neg, clip, variant)
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    scores = scores.clip(-SCORE_LIMIT, SCORE_LIMIT)
    targets = targets.to(scores.dtype)
    log_q, log_not_q = F.logsigmoid(scores), F.logsigmoid(-scores)
    q = log_q.exp()
    is_above_clip = q > max(clip, torch.finfo(q.dtype).tiny)  # at 0 a power has no finite slope
    u = torch.where(is_above_clip, q - clip, 0.5)  # 0.5 is a placeholder for a loss of 0
    log_not_u = torch.logaddexp(log_not_q, torch.full_like(log_not_q, clip).log())
    weight_pos, weight_neg = (gamma_pos * log_not_q).exp(), u**gamma_neg
    if variant == "code":
        weight_pos, weight_neg = weight_pos.detach(), weight_neg.detach()
    positive = -weight_pos * log_q
    negative = torch.where(is_above_clip, -weight_neg * log_not_u, 0.0)
    return targets * positive + (1 - targets) * negative
