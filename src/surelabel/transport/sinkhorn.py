"""Regions share themselves out to labels: optimal transport with entropy."""

from dataclasses import fields
from typing import Literal

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.transport import kernel, logarithms, released
from surelabel.transport.plan import Plan
from surelabel.transport.problem import Goal, Problem


def sinkhorn(
    cost: Tensor,
    rows: Tensor,
    columns: Tensor,
    *,
    regularization: float = 0.1,
    tolerance: float = 1e-4,
    max_steps: int = 100,
    variant: Literal["paper", "code"] = "paper",
) -> Plan:
    """Match regions to labels at the least cost, softened by entropy (Sinkhorn's iteration).

        minimise  <C, P> - regularization · H(P)   with  P 1 = u,  P' 1 = v,  P >= 0

    Every picture stops by itself, when the sums over labels miss u by ``tolerance`` or less in
    all; the sums over regions are exact. Works on the kernel exp(-C / regularization) where costs
    of a picture differ by no more than 40 times the regularization (300 times in float64), else
    on logarithms in float64. Never below float32, also under autocast; float32 gets no nearer than
    about 1e-6. No gradient flows through the plan.

    Args:
        cost: Of a region for a label (C), ``(n, p, c)``, finite.
        rows: Weights of the regions (u), ``(n, p)``, sum 1 in each picture.
        columns: Weights of the labels (v), ``(n, c)``, sum 1 in each picture.
        regularization: How evenly mass spreads (lambda), > 0, in units of cost.
        tolerance: The error of each picture at which it stops, > 0, a share of its mass.
        max_steps: After how many steps to give up, >= 1.
        variant: The stopping rule, the ``"paper"``'s optimum or that of the released ``"code"``.

    Returns:
        The plan. One that did not converge says so, and raises ``NotConverged`` when it is used.

    Raises:
        InputError: shapes differ, a cost is not finite, or weights do not sum to 1.
        ConfigError: a setting is out of range.
        NotConverged: with ``variant="code"``, where the kernel fits into no number format.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 1 and 12; Cuturi,
        Sinkhorn Distances: Lightspeed Computation of Optimal Transport, NIPS 2013.

    Differs:
        The released code stops a whole batch when its factors change by less than 1e-3, whatever
        their size, so that a picture depends on its batch; up to 5e-3 of the mass was then in the
        wrong place. ``variant="code"`` does that; ``tolerance`` has no part in it, and
        ``converged`` means that this rule was met. Under autocast the released code iterates in
        half precision, where 3 to 4 % of the mass is lost; no variant does that.

    Example:
        >>> half = torch.tensor([[0.5, 0.5]])
        >>> plan = sinkhorn(torch.tensor([[[0.0, 0.2], [0.1, 1.0]]]), half, half)
        >>> plan.matrix.round(decimals=4)
        tensor([[[0.0147, 0.4854],
                 [0.4853, 0.0146]]])
    """
    goal = Goal(regularization, tolerance, max_steps)
    if variant not in ("paper", "code"):
        raise ConfigError(f'variant must be "paper" or "code". Got {variant!r}.')
    problem = Problem.of(cost, rows, columns)
    with torch.no_grad(), torch.autocast(cost.device.type, enabled=False):
        return released.solve(problem, goal) if variant == "code" else _solved(problem, goal)


def _solved(problem: Problem, goal: Goal) -> Plan:
    """Each picture in the domain that suits it."""
    easy = kernel.fits(problem, goal.regularization)
    if easy.all():
        return kernel.solve(problem, goal)
    if not easy.any():
        return logarithms.solve(problem, goal)
    plans = kernel.solve(problem.take(easy), goal), logarithms.solve(problem.take(~easy), goal)
    order = torch.cat([easy.nonzero(), (~easy).nonzero()])[:, 0].argsort()
    return Plan(*(torch.cat(parts)[order] for parts in zip(*map(_parts, plans), strict=True)))


def _parts(plan: Plan) -> list[Tensor]:
    return [getattr(plan, field.name) for field in fields(plan)]
