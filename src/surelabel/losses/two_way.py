"""Two-way loss: positives above negatives, within each picture and within each label."""

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
    """Charge the worst positives for the best negatives, along pictures and along labels.

        of a line: softplus(T- · log Σ (1 - y) · exp(score / T-) + T+ · log Σ y · exp(-score / T+))
        loss:      mean over labels + mean over pictures, of those with a positive

    It compares scores only, so a constant added to all of them changes nothing: they have no
    level and no link makes them log-odds. It sees one batch at a time, and depends on its size.

    Args:
        scores: Of the method, ``(n, c)``, any finite number.
        targets: 1 where the label is present, 0 where absent, in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``; the others have no influence.
        temperature_pos: How many positives share the blame (T_p), > 0.
        temperature_neg: How many negatives share it (T_n), > 0.

    Returns:
        One number, ``()``, float32 at least; 0 for a batch that has no positive.

    Raises:
        InputError: ``scores``, ``targets`` and ``known`` differ in shape.
        ConfigError: a temperature is not a finite number above 0.

    Source:
        Kobayashi, Two-Way Multi-Label Loss, CVPR 2023.

    Differs:
        Labels that do not belong to a sum are left out of it; the authors' code adds -100 to
        them. Graded targets weigh both sums, y and 1 - y, and a line counts by its largest
        target in the mean. A batch without positives costs 0; there it is not a number.

    Example:
        >>> scores, targets = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0]])
        >>> two_way(scores, targets, torch.ones(1, 2, dtype=torch.bool)).round(decimals=4)
        tensor(0.1269)
    """
    for name, value in (
        ("temperature_pos", temperature_pos),
        ("temperature_neg", temperature_neg),
    ):
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(f"{name} must be a finite number above 0. Got {value}.")
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"), known=(known, "n c"))
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    present = torch.where(known, targets.to(scores.dtype), 0.0)
    absent = torch.where(known, 1 - targets.to(scores.dtype), 0.0)

    if not scores.numel():
        return scores.sum()

    def mean_along(dim: int) -> Tensor:
        worst = temperature_pos * _log_sum(-scores / temperature_pos, present, dim)
        best = temperature_neg * _log_sum(scores / temperature_neg, absent, dim)
        mixed = (present > 0).any(dim) & (absent > 0).any(dim)
        cost = torch.where(mixed, -F.logsigmoid(-(worst + best)), 0.0)
        counts = present.amax(dim)
        return (counts * cost).sum() / counts.sum().clamp(min=torch.finfo(scores.dtype).tiny)

    return mean_along(0) + mean_along(1)


def _log_sum(values: Tensor, weights: Tensor, dim: int) -> Tensor:
    """Log Σ weights · exp(values); of lines without any weight, some finite number."""
    counted = weights > 0
    logs = values + torch.where(counted, weights, 1.0).log()
    return torch.where(counted | ~counted.any(dim, keepdim=True), logs, -torch.inf).logsumexp(dim)
