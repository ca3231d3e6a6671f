"""Run Sinkhorn's iteration with logarithms, for kernels that underflow."""

import torch

from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import SinkhornSettings, TransportProblem
from surelabel.transport.sinkhorn_iteration.anderson_acceleration import AndersonAcceleration


def solve_sinkhorn_in_log_domain(
    problem: TransportProblem, settings: SinkhornSettings
) -> TransportPlan:
    """Return the plan of Sinkhorn's iteration with logarithms in float64.

    In the returned plan, ``kernel`` is the matrix of the plan, and all elements of ``left`` and
    ``right`` are 1. The potentials are float64.
    """
    log_kernel = problem.cost.double() / -settings.regularization
    rows, columns = problem.rows.double(), problem.columns.double()
    acceleration = AndersonAcceleration(torch, rows) if settings.is_accelerated else None
    base_row_sums = log_kernel.logsumexp(2)
    factors = -base_row_sums  # logarithms of the left factors relative to the weights
    steps = rows.new_zeros(len(rows))
    active = steps == 0
    for _ in range(settings.max_steps):
        left = rows.log() + factors
        right = columns.log() - (log_kernel + left[:, :, None]).logsumexp(1)
        row_sums = (log_kernel + right[:, None, :]).logsumexp(2)
        residual = factors + row_sums
        error = (rows * torch.expm1(residual).abs()).sum(1)
        steps = steps + active
        active = error > settings.tolerance
        if not active.any():
            break
        next_factors = -row_sums
        if acceleration:
            correction, is_discarded = acceleration.next_correction(residual, error)
            row_sums[is_discarded] = base_row_sums[is_discarded]
            base_row_sums = row_sums
            next_factors = correction - row_sums
        factors = torch.where(active[:, None], next_factors, factors)
    plan = (log_kernel + left[:, :, None] + right[:, None, :]).exp().to(problem.cost.dtype)
    ones = torch.ones_like(problem.rows), torch.ones_like(problem.columns)
    return TransportPlan(
        *(plan, *ones, steps.int(), error.to(plan.dtype), ~active),
        region_potentials=left,
        regularization=settings.regularization,
    )
