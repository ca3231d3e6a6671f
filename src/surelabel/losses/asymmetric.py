"""Asymmetric loss for multi-label recognition; focal loss is one of its settings."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.links.focal import Variant, check_focus
from surelabel.links.spa import SCORE_LIMIT
from surelabel.shapes import check_shapes


def asymmetric(
    scores: Tensor,
    targets: Tensor,
    *,
    gamma_pos: float = 0.0,
    gamma_neg: float = 4.0,
    clip: float = 0.05,
    variant: Variant = "paper",
) -> Tensor:
    """Down-weight easy negatives and drop the easiest ones.

        positive: -(1 - q)^gamma_pos · log(q)          q = sigmoid(score)
        negative: -u^gamma_neg · log(1 - u)            u = max(q - clip, 0)
        loss:     y · positive + (1 - y) · negative

    Its scores are not log-odds: ``links.Focal`` with the same settings makes them so.
    ``gamma_pos = gamma_neg, clip = 0`` is the focal loss.

    Args:
        scores: Of the method, ``(n, c)``, any finite number.
        targets: 1 where the label is present, 0 where absent, in [0, 1], ``(n, c)``.
        gamma_pos: Focusing power of positives (gamma+), >= 0.
        gamma_neg: Focusing power of negatives (gamma-), >= 0.
        clip: Probability below which a negative costs nothing (m), in [0, 1).
        variant: "paper" lets the gradient through the focusing weights; "code" takes them as
            constants, which changes the gradient and the link but not the value.

    Returns:
        The loss of every element, ``(n, c)``, in nats, float32 at least. Nothing is summed.

    Raises:
        InputError: ``scores`` and ``targets`` differ in shape.
        ConfigError: a setting is out of its range.

    Source:
        Ridnik et al., Asymmetric Loss For Multi-Label Classification, ICCV 2021,
        arXiv:2009.14119; as eq. 8 of Cheng and Vasconcelos, Towards Calibrated Multi-label Deep
        Neural Networks, CVPR 2024.

    Differs:
        Default variant "paper"; the authors' training script detaches the weights, which is
        "code". Works in log space, so a confident mistake keeps its gradient, which the authors'
        clamp at 1e-8 loses. Soft targets mix the two losses; the authors' code mixes them inside
        the weights, which is right for 0 and 1 only. Scores beyond 1e30 count as 1e30. Returns
        elements; the authors sum.

    Example:
        >>> asymmetric(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]])).round(decimals=4)
        tensor([[0.6931, 0.0245]])
    """
    check_focus(gamma_pos, gamma_neg, clip, variant)
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    scores = scores.clip(-SCORE_LIMIT, SCORE_LIMIT)
    targets = targets.to(scores.dtype)
    log_q, log_not_q = F.logsigmoid(scores), F.logsigmoid(-scores)
    q = log_q.exp()
    kept = q > max(clip, torch.finfo(q.dtype).tiny)  # below, a power has no finite slope
    u = torch.where(kept, q - clip, 0.5)  # 0.5 stands in where a negative costs nothing
    log_not_u = torch.logaddexp(log_not_q, torch.full_like(log_not_q, clip).log())
    weight_pos, weight_neg = (gamma_pos * log_not_q).exp(), u**gamma_neg
    if variant == "code":
        weight_pos, weight_neg = weight_pos.detach(), weight_neg.detach()
    positive = -weight_pos * log_q
    negative = torch.where(kept, -weight_neg * log_not_u, 0.0)
    return targets * positive + (1 - targets) * negative
