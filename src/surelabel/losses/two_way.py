"""Compute the two-way loss, which ranks positives above negatives per image and per label."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes


def two_way(
    scores: Tensor,
    targets: Tensor,
    known: Tensor,
    *,
    temperature_pos: float = 4.0,
    temperature_neg: float = 1.0,
) -> Tensor:
    """Compute the two-way loss, which penalizes positives that score below negatives.

        loss of a row (image) or column (label):
            softplus(T- · log Σ (1 - y) · exp(score / T-) + T+ · log Σ y · exp(-score / T+))
        loss: mean over labels with a positive + mean over images with a positive

    In these formulas, y is the target, T+ is the temperature of positives, and T- is the
    temperature of negatives. The sums are over the known targets of the row or column. The loss of
    a row or column without a negative is 0. A constant added to all scores does not change the
    loss, so no link converts the scores to log-odds. The loss depends on the batch size.

    Args:
        scores: Finite scores of ``n`` images and ``c`` labels, ``(n, c)``.
        targets: Targets in [0, 1], where 1 is positive, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``; unknown targets are ignored.
        temperature_pos: Temperature of the soft minimum over positives (T_p), > 0.
        temperature_neg: Temperature of the soft maximum over negatives (T_n), > 0.

    Returns:
        Loss, a scalar. If the batch has no positive, the loss is 0. The type is float32, or float64
        if ``scores`` is float64.

    Raises:
        InputError: If ``scores``, ``targets`` and ``known`` differ in shape.
        ConfigError: If a temperature is not a finite number > 0.

    Source:
        Kobayashi, Two-Way Multi-Label Loss, CVPR 2023.

    Differs:
        Positives are excluded from the sum over negatives, and negatives from the sum over
        positives; the code of Kobayashi adds -100 to their exponents instead. A graded target y
        (between 0 and 1) has the weight y in one sum and 1 - y in the other sum. The weight of a
        row or column in the mean is the largest target of the row or column. The loss of a batch
        without positives is 0, but the code of Kobayashi returns NaN.

    Example:
        >>> scores, targets = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0]])
        >>> two_way(scores, targets, torch.ones(1, 2, dtype=torch.bool)).round(decimals=4)
        tensor(0.1269)
    """
    for name, temperature in (
        ("temperature_pos", temperature_pos),
        ("temperature_neg", temperature_neg),
    ):
        if not (math.isfinite(temperature) and temperature > 0):
            raise ConfigError(
                f"{name} must be a finite number > 0; got {temperature}. Use 1 for no effect."
            )
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"), known=(known, "n c"))
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    positive = torch.where(known, targets.to(scores.dtype), 0.0)
    negative = torch.where(known, 1 - targets.to(scores.dtype), 0.0)

    if not scores.numel():
        return scores.sum()

    def mean_along(dim: int) -> Tensor:
        """Return the mean loss of all columns (``dim`` 0) or all rows (``dim`` 1)."""
        lowest_positive = temperature_pos * _two_way_logsumexp(
            -scores / temperature_pos, positive, dim
        )
        highest_negative = temperature_neg * _two_way_logsumexp(
            scores / temperature_neg, negative, dim
        )
        has_both = (positive > 0).any(dim) & (negative > 0).any(dim)
        losses = torch.where(has_both, -F.logsigmoid(-(lowest_positive + highest_negative)), 0.0)
        weights = positive.amax(dim)
        return (weights * losses).sum() / weights.sum().clamp(min=torch.finfo(scores.dtype).tiny)

    return mean_along(0) + mean_along(1)


def _two_way_logsumexp(exponents: Tensor, weights: Tensor, dim: int) -> Tensor:
    """Return log Σ weights · exp(exponents), or any finite number if all weights are 0."""
    has_weight = weights > 0
    logs = exponents + torch.where(has_weight, weights, 1.0).log()
    is_counted = has_weight | ~has_weight.any(dim, keepdim=True)
    return torch.where(is_counted, logs, -torch.inf).logsumexp(dim)
