"""Entropy-regularized optimal transport by Sinkhorn's iteration."""

from dataclasses import fields
from typing import Literal

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import SinkhornSettings, TransportProblem
from surelabel.transport.sinkhorn import sinkhorn_kernel, sinkhorn_log, sinkhorn_released


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

        minimize  <C, P> - regularization · H(P)   with  P 1 = u,  P' 1 = v,  P >= 0

    where C is the cost, P is the transport plan, H(P) is the entropy of the plan, and u and v are
    the weights of regions and labels. The iteration of each image stops independently when the
    total error of the region marginal is at most ``tolerance``. The label marginal is exact. The
    iteration uses the kernel exp(-C / regularization) if the costs of an image differ by at most 40
    times the regularization (300 times in float64). If the costs differ by more, the iteration uses
    logarithms in float64. The precision is float32 or float64, also under autocast. In float32 the
    smallest possible error of the region marginal is about 1e-6. The plan has no gradient.

    Args:
        cost: Cost of each region for each label (C), ``(n, p, c)``, finite.
        rows: Weights of the regions (u), ``(n, p)``, sum 1 in each image.
        columns: Weights of the labels (v), ``(n, c)``, sum 1 in each image.
        regularization: Weight of the entropy (lambda), > 0, in units of cost.
        tolerance: Total error of the region marginal at which the iteration of an image stops, > 0.
            The region weights of an image sum to 1.
        max_steps: Maximum number of iterations, >= 1.
        variant: Stopping rule: ``"paper"`` for the optimum, ``"code"`` for the rule of the
            released code.

    Returns:
        Transport plan. If the plan did not converge, the methods of the plan raise
        ``NotConverged``.

    Raises:
        InputError: If the shapes differ, a cost is not finite, or weights do not sum to 1.
        ConfigError: If a setting is out of range.
        NotConverged: If the kernel underflows with ``variant="code"``.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 1 and 12; Cuturi,
        Sinkhorn Distances: Lightspeed Computation of Optimal Transport, NIPS 2013.

    Differs:
        The released code stops a whole batch when its factors change by less than 1e-3, whatever
        their size. The plan of an image then depends on its batch, and up to 5e-3 of the mass is
        misplaced. ``variant="code"`` reproduces this rule; it ignores ``tolerance``, and
        ``converged`` means that the rule was met. Under autocast the released code iterates in
        half precision, where 3 to 4 % of the mass is lost; no variant reproduces that.

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
    solve = sinkhorn_released.solve_sinkhorn_as_released if variant == "code" else _solve_sinkhorn
    with torch.no_grad(), torch.autocast(cost.device.type, enabled=False):
        return solve(problem, settings)


def _solve_sinkhorn(problem: TransportProblem, settings: SinkhornSettings) -> TransportPlan:
    """Return the plan, computed with the kernel or, where it underflows, with logarithms."""
    with_kernel = sinkhorn_kernel.sinkhorn_kernel_is_representable(problem, settings.regularization)
    if with_kernel.all():
        return sinkhorn_kernel.solve_with_sinkhorn_kernel(problem, settings)
    if not with_kernel.any():
        return sinkhorn_log.solve_sinkhorn_in_log_domain(problem, settings)
    plans = (
        sinkhorn_kernel.solve_with_sinkhorn_kernel(problem.select_images(with_kernel), settings),
        sinkhorn_log.solve_sinkhorn_in_log_domain(problem.select_images(~with_kernel), settings),
    )
    order = torch.cat([with_kernel.nonzero(), (~with_kernel).nonzero()])[:, 0].argsort()
    tensors = zip(*map(_sinkhorn_plan_tensors, plans), strict=True)
    return TransportPlan(*(torch.cat(parts)[order] for parts in tensors))


def _sinkhorn_plan_tensors(plan: TransportPlan) -> list[Tensor]:
    """Return the tensors of a plan in the order of its fields."""
    return [getattr(plan, field.name) for field in fields(plan)]
