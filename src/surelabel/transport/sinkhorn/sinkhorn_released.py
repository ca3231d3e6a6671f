"""Run Sinkhorn's iteration with the stopping rule of the released code of "Recover and Match"."""

import torch

from surelabel.errors import NotConverged
from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import SinkhornSettings, TransportProblem

MAX_CHANGE = 1e-3  # fixed in the released code, which ignores its threshold argument


def solve_sinkhorn_as_released(
    problem: TransportProblem, settings: SinkhornSettings
) -> TransportPlan:
    """Return the transport plan, computed with the stopping rule of the authors' released code.

    The iteration of all images stops when the scaling factors of the regions change by less than
    1e-3 on average in every image.

    Raises:
        NotConverged: If the kernel underflows.
    """
    kernel = (problem.cost / -settings.regularization).exp()
    left, right = torch.ones_like(problem.rows), torch.ones_like(problem.columns)
    steps, has_converged = 0, False
    while steps < settings.max_steps and not has_converged:
        previous = left
        left = problem.rows / (kernel @ right[:, :, None])[:, :, 0]
        right = problem.columns / (left[:, None] @ kernel)[:, 0]
        has_converged = bool(((left - previous).abs().mean(1) < MAX_CHANGE).all())
        steps += 1
    error = (left * (kernel @ right[:, :, None])[:, :, 0] - problem.rows).abs().sum(1)
    if not error.isfinite().all():
        raise NotConverged(
            "The kernel exp(-cost / regularization) must not underflow; got an underflow in "
            f"{kernel.dtype} with costs that differ by {float(problem.cost_range.max()):.3g} and "
            f'regularization {settings.regularization}. Use variant="paper", or raise the '
            "regularization."
        )
    steps_per_image = torch.full_like(error, steps, dtype=torch.int32)
    converged = torch.full_like(error, has_converged) > 0
    return TransportPlan(
        *(kernel, left, right, steps_per_image, error, converged),
        region_potentials=left.log(),
        regularization=settings.regularization,
    )
