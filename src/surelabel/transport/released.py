"""Sinkhorn's iteration with the stopping rule of the released code of "Recover and Match"."""

import torch

from surelabel.errors import NotConverged
from surelabel.transport.plan import Plan
from surelabel.transport.problem import Goal, Problem

SETTLED = 1e-3  # fixed in the released code, whatever threshold is asked for


def solve(problem: Problem, goal: Goal) -> Plan:
    """Stop all pictures when the left factors of each have changed by less than 1e-3 on average.

    Raises:
        NotConverged: the kernel does not fit into the number format.
    """
    kernel = (problem.cost / -goal.regularization).exp()
    left, right = torch.ones_like(problem.rows), torch.ones_like(problem.columns)
    steps, settled = 0, False
    while steps < goal.max_steps and not settled:
        before = left
        left = problem.rows / (kernel @ right[:, :, None])[:, :, 0]
        right = problem.columns / (left[:, None] @ kernel)[:, 0]
        settled = bool(((left - before).abs().mean(1) < SETTLED).all())
        steps += 1
    error = (left * (kernel @ right[:, :, None])[:, :, 0] - problem.rows).abs().sum(1)
    if not error.isfinite().all():
        raise NotConverged(
            f"Costs that differ by {float(problem.spread.max()):.3g} must not vanish at a "
            f"regularization of {goal.regularization} and do in {kernel.dtype}. Take "
            'variant="paper", or raise the regularization.'
        )
    counted = torch.full_like(error, steps, dtype=torch.int32)
    return Plan(kernel, left, right, counted, error, torch.full_like(error, settled) > 0)
