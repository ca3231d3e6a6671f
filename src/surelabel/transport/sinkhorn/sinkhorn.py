"""Solve entropy-regularized optimal transport by Sinkhorn's iteration."""

from typing import Literal

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import SinkhornSettings, TransportProblem
from surelabel.transport.sinkhorn import sinkhorn_released
from surelabel.transport.sinkhorn_iteration.sinkhorn_solver import solve_sinkhorn


def sinkhorn(
    cost: Tensor,
    rows: Tensor,
    columns: Tensor,
    *,
    regularization: float = 0.1,
    tolerance: float = 1e-4,
    max_steps: int = 100,
    variant: Literal["paper", "code"] = "paper",
) -> TransportPlan:
    """Compute the entropy-regularized optimal transport of regions to labels (Sinkhorn).

        minimize  <C, P> - regularization · H(P)
        with  Σ_j P_ij = u_i,  Σ_i P_ij = v_j,  P_ij >= 0

    In this problem, C is the cost, P is the transport plan, <C, P> is the sum of all C_ij · P_ij,
    and H(P) is the entropy of the plan. u_i is the weight of region i, and v_j is the weight of
    label j.

    The iteration of each image stops independently when the total error of the region marginal is
    at most ``tolerance``. The label marginal is exact. The iteration uses the kernel
    exp(-C / regularization) if the costs of an image differ by at most 40 times the regularization
    (300 times in float64). If the costs differ by more, the iteration uses logarithms in float64.
    The precision is float32 or float64, also under autocast. In float32, the smallest possible
    error of the region marginal is about 1e-6. The plan has no gradient.

    Args:
        cost: Cost of each region for each label (C), ``(n, p, c)`` for n images, p regions and c
            labels, finite.
        rows: Weights of the regions (u), ``(n, p)``, with sum 1 in each image.
        columns: Weights of the labels (v), ``(n, c)``, with sum 1 in each image.
        regularization: Weight of the entropy (lambda), > 0, in units of cost.
        tolerance: Total error of the region marginal at which the iteration of an image stops, > 0.
            The total weight of the regions is 1.
        max_steps: Maximum number of iterations, >= 1.
        variant: Stopping rule: ``"paper"`` iterates until ``tolerance`` is reached, ``"code"`` uses
            the rule of the authors' released code.

    Returns:
        Transport plan. If the plan did not converge, ``apply`` and ``matrix`` raise
        ``NotConverged``.

    Raises:
        InputError: If the shapes differ, if a cost is not finite, or if weights are negative or do
            not sum to 1.
        ConfigError: If ``regularization``, ``tolerance`` or ``max_steps`` is not a finite number
            above 0, or if ``variant`` is unknown.
        NotConverged: If the kernel underflows with ``variant="code"``.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 1 and 12; Cuturi,
        Sinkhorn Distances: Lightspeed Computation of Optimal Transport, NIPS 2013.

    Differs:
        The authors' code stops the iteration of a whole batch when the scaling factors of the
        regions change by less than 1e-3 on average, regardless of their size. Therefore the plan of
        an image depends on the other images of the batch, and up to 0.5 % of the weight is assigned
        to wrong regions. ``variant="code"`` reproduces this rule and ignores ``tolerance``;
        ``converged`` is True if the rule was met. The number of steps also depends on constants
        that are added to all costs of a label. On simulated CLIP features, the number is 4 with
        ``knowledge_constrained_log_teacher_plan`` and 12 with the teacher plan of the authors'
        code. Under autocast, the authors' code iterates in half precision and loses 3 to 4 % of the
        weight; no variant reproduces this loss.

    Example:
        >>> half = torch.tensor([[0.5, 0.5]])
        >>> plan = sinkhorn(torch.tensor([[[0.0, 0.2], [0.1, 1.0]]]), half, half)
        >>> plan.matrix.round(decimals=4)
        tensor([[[0.0147, 0.4854],
                 [0.4853, 0.0146]]])
    """
    settings = SinkhornSettings(regularization, tolerance, max_steps)
    if variant not in ("paper", "code"):
        raise ConfigError(f'variant must be "paper" or "code"; got {variant!r}.')
    problem = TransportProblem.from_tensors(cost, rows, columns)
    solve = sinkhorn_released.solve_sinkhorn_as_released if variant == "code" else solve_sinkhorn
    with torch.no_grad(), torch.autocast(cost.device.type, enabled=False):
        return solve(problem, settings)
