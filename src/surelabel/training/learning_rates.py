"""Compute the learning rates of parameter groups, with warm-up and cosine decay."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR

from surelabel.errors import ConfigError
from surelabel.methods import ScalesLearningRates
from surelabel.training.batches import BatchSource


def learning_rate_parameter_groups(
    method: nn.Module, source: BatchSource, learning_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Return the trainable parameters, grouped by learning rate and weight decay.

    Weight decay applies only to parameters with two or more axes.
    """
    scales = method.learning_rate_scales if isinstance(method, ScalesLearningRates) else {}
    parameters_of: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in [*method.named_parameters(), *(("", p) for p in source.parameters())]:
        if parameter.requires_grad:
            decay = weight_decay if parameter.ndim >= 2 else 0.0
            scale = _learning_rate_scale(scales, name)
            parameters_of.setdefault((scale, decay), []).append(parameter)
    return [
        {"params": parameters, "lr": scale * learning_rate, "weight_decay": decay}
        for (scale, decay), parameters in parameters_of.items()
    ]


def learning_rate_schedule(
    optimizer: torch.optim.Optimizer, steps: int, warm_up: float
) -> LRScheduler:
    """Return a schedule with linear warm-up and cosine decay to zero.

    With r warm-up steps, the learning rate in step k <= r is the peak learning rate multiplied by
    k / (r + 1). The first step after the warm-up has the peak learning rate.

    Args:
        optimizer: Optimizer with the peak learning rates.
        steps: Total number of optimizer steps.
        warm_up: Fraction of the steps that are warm-up steps, in [0, 1). At least one step follows
            the warm-up.

    Raises:
        ConfigError: If ``warm_up`` is out of range.
    """
    if not 0 <= warm_up < 1:
        raise ConfigError(f"warm_up must be in [0, 1); got {warm_up}.")
    warm_up_steps = min(round(warm_up * steps), steps - 1)
    if warm_up_steps < 1:
        return CosineAnnealingLR(optimizer, steps)
    warm_up_phase = LinearLR(optimizer, 1 / (warm_up_steps + 1), total_iters=warm_up_steps)
    decay_phase = CosineAnnealingLR(optimizer, steps - warm_up_steps)
    return SequentialLR(optimizer, [warm_up_phase, decay_phase], [warm_up_steps])


def _learning_rate_scale(scales: Mapping[str, float], name: str) -> float:
    """Return the scale of the longest module path that contains ``name``; otherwise, return 1."""
    prefixes = [prefix for prefix in scales if f"{name}.".startswith(f"{prefix}.")]
    return scales[max(prefixes, key=len)] if prefixes else 1.0
