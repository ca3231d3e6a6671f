"""Sinkhorn's iteration on the kernel itself: fast, where the kernel fits into the number format."""

from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surelabel.transport.plan import Plan
from surelabel.transport.problem import Goal, Problem

NEAR = 2**20  # bytes of kernels worked on at a time on a processor: they stay in a core's cache
LIMIT = {torch.float32: 40.0, torch.float64: 300.0}  # nats; a format ends near 87 and 708


def fits(problem: Problem, regularization: float) -> Tensor:
    """Whether no entry of a picture's kernel gets too small to count, ``(n)``."""
    return problem.spread / regularization <= LIMIT[problem.cost.dtype]


def solve(problem: Problem, goal: Goal) -> Plan:
    """Iterate ``left = u / K right``, ``right = v / K' left`` in each picture until it is done."""
    cost, rows, columns = problem.cost, problem.rows, problem.columns
    kernel, parts = torch.empty_like(cost), []
    for some in _blocks(cost):
        lowest = cost[some].amin((1, 2), keepdim=True)
        torch.sub(lowest, cost[some], out=kernel[some]).div_(goal.regularization)
        parts.append(_scalings(kernel[some], rows[some], columns[some], goal))
    left, right, steps, error = (torch.cat(some) for some in zip(*parts, strict=True))
    return Plan(kernel, left, right, steps.int(), error, error <= goal.tolerance)


def _blocks(cost: Tensor) -> list[slice]:
    """A few pictures at a time on a processor, all of them on an accelerator."""
    pictures = max(1, len(cost))
    bytes_each = max(1, cost.numel() // pictures * cost.element_size())
    several = max(1, NEAR // bytes_each) if cost.device.type == "cpu" else pictures
    return [slice(start, start + several) for start in range(0, pictures, several)]


def _scalings(kernel: Tensor, rows: Tensor, columns: Tensor, goal: Goal) -> list[Tensor]:
    """The factors, steps and error of a block; by numpy on a processor, ten times as fast."""
    if kernel.device.type != "cpu":
        return list(iterate(torch, kernel, rows, columns, goal))
    found = iterate(np, kernel.numpy(), rows.numpy(), columns.numpy(), goal)
    return [torch.from_numpy(part) for part in found]


def iterate(
    library: ModuleType, kernel: Any, rows: Any, columns: Any, goal: Goal
) -> tuple[Any, Any, Any, Any]:
    """The iteration, on arrays of numpy or torch; ``kernel`` comes as logarithms.

    A picture that is done stays as it is, so that no picture depends on those beside it.

    Returns:
        Factors of regions ``(n, p)`` and of labels ``(n, c)``, steps ``(n)`` and error ``(n)``.
    """
    library.exp(kernel, out=kernel)
    left, sums = library.zeros_like(rows), kernel.sum(2)
    steps = library.zeros_like(rows[:, 0])
    moving = steps == 0
    for _ in range(goal.max_steps):
        left = library.where(moving[:, None], rows / sums, left)
        right = columns / (left[:, None] @ kernel)[:, 0]  # stays too, where left does
        sums = (kernel @ right[:, :, None])[:, :, 0]
        error = abs(left * sums - rows).sum(1)
        steps = steps + moving
        moving = error > goal.tolerance
        if not moving.any():
            break
    return left, right, steps, error
