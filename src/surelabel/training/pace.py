"""How far each step goes: what parts of a method learn at, and how that changes with time."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR

from surelabel.errors import ConfigError
from surelabel.training.batch import Source


def groups(
    method: nn.Module, source: Source, learning_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    """All that is trained, by step size and weight decay, as an optimizer takes it."""
    rates: Mapping[str, float] = getattr(method, "rates", {})
    found: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in [*method.named_parameters(), *(("", p) for p in source.parameters())]:
        if parameter.requires_grad:
            decay = weight_decay if parameter.ndim >= 2 else 0.0
            found.setdefault((_rate(rates, name), decay), []).append(parameter)
    return [
        {"params": parameters, "lr": rate * learning_rate, "weight_decay": decay}
        for (rate, decay), parameters in found.items()
    ]


def schedule(trained: torch.optim.Optimizer, steps: int, warm_up: float) -> LRScheduler:
    """Steps that rise along a line for a share of all, and then fall to zero along a cosine.

    With r rising steps the k-th of them is k / (r + 1) of the largest step, which comes after them.

    Raises:
        ConfigError: ``warm_up`` is out of its range.
    """
    if not 0 <= warm_up < 1:
        raise ConfigError(f"warm_up must be from 0 and below 1. Got {warm_up}.")
    rising = min(round(warm_up * steps), steps - 1)
    if rising < 1:
        return CosineAnnealingLR(trained, steps)
    rise = LinearLR(trained, 1 / (rising + 1), total_iters=rising)
    fall = CosineAnnealingLR(trained, steps - rising)
    return SequentialLR(trained, [rise, fall], [rising])


def _rate(rates: Mapping[str, float], name: str) -> float:
    """Of the longest beginning that ``name`` has, whole words of it; 1 where it has none."""
    fitting = [part for part in rates if f"{name}.".startswith(f"{part}.")]
    return rates[max(fitting, key=len)] if fitting else 1.0
