"""Run Sinkhorn's iteration with the kernel exp(-cost / regularization), without underflow."""

from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import SinkhornSettings, TransportProblem
from surelabel.transport.sinkhorn_iteration.anderson_acceleration import AndersonAcceleration

BYTES_PER_BLOCK = 2**21  # size of the kernels of a block on a CPU, so that they fit into the cache
MAX_EXPONENT = {torch.float32: 40.0, torch.float64: 300.0}  # nats; underflow near 87 and 708


def sinkhorn_kernel_is_representable(problem: TransportProblem, regularization: float) -> Tensor:
    """Return True for each image whose kernel does not underflow, ``(n,)``."""
    return problem.cost_range / regularization <= MAX_EXPONENT[problem.cost.dtype]


def solve_with_sinkhorn_kernel(
    problem: TransportProblem, settings: SinkhornSettings
) -> TransportPlan:
    """Return the transport plan of Sinkhorn's iteration with the kernel K.

    Each step computes the scaling factors ``left = u / (K right)`` and ``right = v / (K' left)``.
    In these formulas, u and v are the weights of regions and labels, K' is the transpose of K, and
    K = exp((lowest cost of the image - cost) / regularization).
    If the iteration is accelerated, ``left`` is extrapolated before ``right`` is computed.
    """
    cost, rows, columns = problem.cost, problem.rows, problem.columns
    kernel, results = torch.empty_like(cost), []
    for block in _sinkhorn_kernel_blocks(cost):
        lowest = cost[block].amin((1, 2), keepdim=True)
        torch.sub(lowest, cost[block], out=kernel[block]).div_(settings.regularization)
        results.append(
            _solve_sinkhorn_kernel_block(kernel[block], rows[block], columns[block], settings)
        )
    left, right, steps, error = (torch.cat(tensors) for tensors in zip(*results, strict=True))
    return TransportPlan(
        *(kernel, left, right, steps.int(), error, error <= settings.tolerance),
        region_potentials=left.log(),
        regularization=settings.regularization,
    )


def _sinkhorn_kernel_blocks(cost: Tensor) -> list[slice]:
    """Return slices of images: small blocks on a CPU, all images on an accelerator."""
    n_images = max(1, len(cost))
    bytes_per_image = max(1, cost.numel() // n_images * cost.element_size())
    size = max(1, BYTES_PER_BLOCK // bytes_per_image) if cost.device.type == "cpu" else n_images
    return [slice(start, start + size) for start in range(0, n_images, size)]


def _solve_sinkhorn_kernel_block(
    kernel: Tensor, rows: Tensor, columns: Tensor, settings: SinkhornSettings
) -> list[Tensor]:
    """Return the scaling factors of regions and labels, the steps and the error of a block."""
    if kernel.device.type != "cpu":
        return list(iterate_sinkhorn_kernel_scalings(torch, kernel, rows, columns, settings))
    with np.errstate(invalid="ignore"):  # OpenBLAS rarely sets this flag for finite products
        arrays = iterate_sinkhorn_kernel_scalings(  # ten times faster than torch on a CPU
            np, kernel.numpy(), rows.numpy(), columns.numpy(), settings
        )
    return [torch.from_numpy(array) for array in arrays]


def iterate_sinkhorn_kernel_scalings(
    library: ModuleType, kernel: Any, rows: Any, columns: Any, settings: SinkhornSettings
) -> tuple[Any, Any, Any, Any]:
    """Compute the scaling factors of the regions and labels, with arrays of numpy or torch.

    The factors of a converged image are not changed, so its plan is independent of other images.

    Args:
        library: The module ``numpy`` or ``torch``.
        kernel: Logarithm of the kernel, ``(n, p, c)``. The array is overwritten with the kernel.
        rows: Weights of the regions, ``(n, p)``.
        columns: Weights of the labels, ``(n, c)``.
        settings: Regularization and stopping rule.

    Returns:
        Scaling factors of the regions, ``(n, p)``, and of the labels, ``(n, c)``, number of steps,
        ``(n,)``, and error of the region marginal, ``(n,)``.
    """
    library.exp(kernel, out=kernel)
    acceleration = AndersonAcceleration(library, rows) if settings.is_accelerated else None
    row_sums = base_row_sums = (kernel @ library.ones_like(columns)[:, :, None])[:, :, 0]
    factors = 1 / row_sums  # left factors relative to the weights, which may be 0
    steps = library.zeros_like(rows[:, 0])
    active = steps == 0
    for _ in range(settings.max_steps):
        left = rows * factors
        right = columns / (left[:, None] @ kernel)[:, 0]  # unchanged if left is unchanged
        row_sums = (kernel @ right[:, :, None])[:, :, 0]
        ratios = factors * row_sums
        error = (rows * abs(ratios - 1)).sum(1)
        steps = steps + active
        active = error > settings.tolerance
        if not active.any():
            break
        next_factors = 1 / row_sums
        if acceleration:
            correction, is_discarded = acceleration.next_correction(library.log(ratios), error)
            row_sums[is_discarded] = base_row_sums[is_discarded]
            base_row_sums = row_sums
            next_factors = library.exp(correction) / row_sums
        factors = library.where(active[:, None], next_factors, factors)
    return left, right, steps, error
