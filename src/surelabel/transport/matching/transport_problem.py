"""Validate the cost and the marginals of a transport problem, in float32 or float64."""

import math
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes

SUM_TOLERANCE = 0.01  # allowed error of the sum of weights; bfloat16 rounds by 0.004


@dataclass(frozen=True)
class TransportProblem:
    """Cost and marginals of a transport problem in float32 or float64, without gradient.

    Attributes:
        cost: Cost of p regions for c labels in n images, ``(n, p, c)``.
        rows: Weights of the regions, with sum 1 in each image, ``(n, p)``.
        columns: Weights of the labels, with sum 1 in each image, ``(n, c)``.
        cost_range: Difference between the largest and the smallest cost of each image, ``(n,)``.
    """

    cost: Tensor
    rows: Tensor
    columns: Tensor
    cost_range: Tensor

    @classmethod
    def from_tensors(cls, cost: Tensor, rows: Tensor, columns: Tensor) -> "TransportProblem":
        """Validate the cost and the weights, and normalize the weights to sum 1.

        All tensors are converted to float32 or float64.

        Raises:
            InputError: If the shapes differ, if there is no region or no label, if a cost is not
                finite, or if weights are negative, not finite or do not sum to 1 within 0.01.
        """
        sizes = check_shapes(cost=(cost, "n p c"), rows=(rows, "n p"), columns=(columns, "n c"))
        if not sizes["p"] or not sizes["c"]:
            raise InputError(
                f"cost must have at least one region and one label; got shape {tuple(cost.shape)}."
            )
        dtypes = (cost.dtype, rows.dtype, columns.dtype, torch.float32)
        dtype = reduce(torch.promote_types, dtypes)
        cost, rows, columns = (tensor.detach().to(dtype) for tensor in (cost, rows, columns))
        cost_range = cost.amax((1, 2)) - cost.amin((1, 2))  # NaN where a cost is NaN or infinite
        _check_transport_problem(cost_range, rows, columns)
        rows, columns = (weights / weights.sum(1, keepdim=True) for weights in (rows, columns))
        return cls(cost.contiguous(), rows, columns, cost_range)

    def select_images(self, mask: Tensor) -> "TransportProblem":
        """Return the transport problem of only the images where ``mask`` is True."""
        return TransportProblem(
            self.cost[mask], self.rows[mask], self.columns[mask], self.cost_range[mask]
        )


@dataclass(frozen=True)
class SinkhornSettings:
    """Regularization and stopping rule of Sinkhorn's iteration.

    Attributes:
        regularization: Weight of the entropy, > 0.
        tolerance: Total error of the region marginal at which the iteration of an image stops, > 0.
        max_steps: Maximum number of iterations, >= 1.
        is_accelerated: Whether Anderson acceleration extrapolates the scaling factors.

    Raises:
        ConfigError: If a setting is not a finite number above 0.
    """

    regularization: float
    tolerance: float
    max_steps: int
    is_accelerated: bool = False

    def __post_init__(self) -> None:
        check_positive_transport_settings(
            regularization=self.regularization, tolerance=self.tolerance, max_steps=self.max_steps
        )


def _check_transport_problem(cost_range: Tensor, rows: Tensor, columns: Tensor) -> None:
    """Raise an InputError if a cost is not finite or weights are invalid.

    While ``torch.export`` records the computation, values do not exist and are not checked.
    """
    if torch.compiler.is_exporting():
        return
    checks = [cost_range.isfinite().all(), *map(_are_transport_marginals, (rows, columns))]
    is_finite, *are_valid = torch.stack(checks).tolist()  # one synchronization of the accelerator
    if not is_finite:
        raise InputError(
            "cost must contain only finite numbers; got NaN or infinity. Use a large finite cost "
            "to exclude a pair of region and label."
        )
    for name, weights, is_valid in zip(
        ("rows", "columns"), (rows, columns), are_valid, strict=True
    ):
        if not is_valid:
            sums = weights.sum(1)
            raise InputError(
                f"{name} must be weights >= 0 that sum to 1 in each image; got values from "
                f"{float(weights.min()):.3g} to {float(weights.max()):.3g} with sums from "
                f"{float(sums.min()):.3g} to {float(sums.max()):.3g}. Divide {name} by their sums."
            )


def _are_transport_marginals(weights: Tensor) -> Tensor:
    """Return whether all weights are at least 0 and sum to 1 within 0.01 in each image, ``()``."""
    return (weights >= 0).all() & ((weights.sum(1) - 1).abs() <= SUM_TOLERANCE).all()


def check_positive_transport_settings(**settings: float) -> None:
    """Check that settings are greater than 0 and finite.

    Raises:
        ConfigError: If a setting is not greater than 0, or is infinite.
    """
    for name, value in settings.items():
        if not 0 < value < math.inf:
            raise ConfigError(f"{name} must be greater than 0 and finite; got {value}.")
