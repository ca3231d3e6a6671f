"""Sinkhorn's iteration with logarithms, for kernels that underflow."""

import torch

from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import SinkhornSettings, TransportProblem


def solve_sinkhorn_in_log_domain(
    problem: TransportProblem, settings: SinkhornSettings
) -> TransportPlan:
    """Return the plan of Sinkhorn's iteration with logarithms in float64.

    In the returned plan, ``kernel`` is the matrix of the plan, and all elements of ``left`` and
    ``right`` are 1.
    """
    log_kernel = problem.cost.double() / -settings.regularization
    rows, columns = problem.rows.double(), problem.columns.double()
    left, row_sums = torch.full_like(rows, -torch.inf), log_kernel.logsumexp(2)
    steps = rows.new_zeros(len(rows))
    active = steps == 0
    for _ in range(settings.max_steps):
        left = torch.where(active[:, None], rows.log() - row_sums, left)
        right = columns.log() - (log_kernel + left[:, :, None]).logsumexp(1)
        row_sums = (log_kernel + right[:, None, :]).logsumexp(2)
        error = ((left + row_sums).exp() - rows).abs().sum(1)
        steps = steps + active
        active = error > settings.tolerance
        if not active.any():
            break
    plan = (log_kernel + left[:, :, None] + right[:, None, :]).exp().to(problem.cost.dtype)
    ones = torch.ones_like(problem.rows), torch.ones_like(problem.columns)
    return TransportPlan(plan, *ones, steps.int(), error.to(plan.dtype), ~active)
