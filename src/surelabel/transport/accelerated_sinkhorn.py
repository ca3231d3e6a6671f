"""Solve optimal transport by Sinkhorn's iteration with Anderson acceleration."""

import torch
from torch import Tensor

from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import SinkhornSettings, TransportProblem
from surelabel.transport.sinkhorn_iteration.sinkhorn_solver import solve_sinkhorn


def accelerated_sinkhorn(
    cost: Tensor,
    rows: Tensor,
    columns: Tensor,
    *,
    regularization: float = 0.1,
    tolerance: float = 1e-4,
    max_steps: int = 100,
) -> TransportPlan:
    """Compute the plan of ``sinkhorn`` in about half the steps, with Anderson acceleration.

    Each step extrapolates the logarithms of the scaling factors of the regions from the last two
    steps, and then computes the scaling factors of the labels. If the error of an image rises, the
    next step of the image is a step of Sinkhorn's iteration. The plan converges to the plan of
    ``sinkhorn``; plans with an error of ``tolerance`` differ by about ``tolerance``.

    Args:
        cost: Cost of each region for each label, ``(n, p, c)`` for n images, p regions and c
            labels, finite.
        rows: Weights of the regions, ``(n, p)``, with sum 1 in each image.
        columns: Weights of the labels, ``(n, c)``, with sum 1 in each image.
        regularization: Weight of the entropy, > 0, in units of cost.
        tolerance: Total error of the region marginal at which the iteration of an image stops, > 0.
            The total weight of the regions is 1.
        max_steps: Maximum number of iterations, >= 1.

    Returns:
        Transport plan. If the plan did not converge, ``apply`` and ``matrix`` raise
        ``NotConverged``.

    Raises:
        InputError: If the shapes differ, if a cost is not finite, or if weights are negative or do
            not sum to 1.
        ConfigError: If ``regularization``, ``tolerance`` or ``max_steps`` is not a finite number
            above 0.

    Source:
        Anderson, Iterative procedures for nonlinear integral equations, Journal of the ACM, 1965;
        Cuturi, Sinkhorn Distances: Lightspeed Computation of Optimal Transport, NIPS 2013.

    Differs:
        The least-squares problem of the extrapolation is weighted with the weights of the regions.
        Anderson weights all components equally, and does not treat rising errors. On thousands of
        random problems, an image needed at most two steps more than with ``sinkhorn``, and usually
        less than half the steps.

    Example:
        >>> half = torch.tensor([[0.5, 0.5]])
        >>> plan = accelerated_sinkhorn(torch.tensor([[[0.0, 0.2], [0.1, 1.0]]]), half, half)
        >>> plan.matrix.round(decimals=3)
        tensor([[[0.0150, 0.4850],
                 [0.4850, 0.0150]]])
    """
    settings = SinkhornSettings(regularization, tolerance, max_steps, is_accelerated=True)
    problem = TransportProblem.from_tensors(cost, rows, columns)
    with torch.no_grad(), torch.autocast(cost.device.type, enabled=False):
        return solve_sinkhorn(problem, settings)
