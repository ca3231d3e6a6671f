"""Sinkhorn's iteration on logarithms: for kernels that fit into no number format."""

import torch

from surelabel.transport.plan import Plan
from surelabel.transport.problem import Goal, Problem


def solve(problem: Problem, goal: Goal) -> Plan:
    """The same steps as on the kernel, always in float64; the plan comes ready-made."""
    scores = problem.cost.double() / -goal.regularization
    rows, columns = problem.rows.double(), problem.columns.double()
    left, sums = torch.full_like(rows, -torch.inf), scores.logsumexp(2)
    steps = rows.new_zeros(len(rows))
    moving = steps == 0
    for _ in range(goal.max_steps):
        left = torch.where(moving[:, None], rows.log() - sums, left)
        right = columns.log() - (scores + left[:, :, None]).logsumexp(1)
        sums = (scores + right[:, None, :]).logsumexp(2)
        error = ((left + sums).exp() - rows).abs().sum(1)
        steps = steps + moving
        moving = error > goal.tolerance
        if not moving.any():
            break
    plan = (scores + left[:, :, None] + right[:, None, :]).exp().to(problem.cost.dtype)
    ones = torch.ones_like(problem.rows), torch.ones_like(problem.columns)
    return Plan(plan, *ones, steps.int(), error.to(plan.dtype), ~moving)
