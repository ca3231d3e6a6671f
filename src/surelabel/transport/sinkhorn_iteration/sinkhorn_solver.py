"""Run Sinkhorn's iteration with the kernel, or with logarithms if the kernel underflows."""

from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import SinkhornSettings, TransportProblem
from surelabel.transport.sinkhorn_iteration import sinkhorn_kernel, sinkhorn_log


def solve_sinkhorn(problem: TransportProblem, settings: SinkhornSettings) -> TransportPlan:
    """Return the plan, computed with the kernel, or with logarithms if the kernel underflows."""
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
    merged: dict[str, Any] = {
        name: torch.cat([getattr(plan, name) for plan in plans])[order]
        for name in _sinkhorn_plan_tensor_names(plans[0])
    }
    return replace(plans[0], **merged)


def _sinkhorn_plan_tensor_names(plan: TransportPlan) -> list[str]:
    """Return the names of the fields that contain one row per image."""
    return [field.name for field in fields(plan) if isinstance(getattr(plan, field.name), Tensor)]
