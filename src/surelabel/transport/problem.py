"""What is to be matched, checked once and in numbers that are exact enough."""

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes

SLACK = 0.01  # by how much weights may miss the sum of 1: bfloat16 rounds by 0.004


@dataclass(frozen=True)
class Problem:
    """Costs and weights in float32 or float64, without gradient.

    Attributes:
        cost: ``(n, p, c)``.
        rows: Weights of regions, sum 1 in each picture, ``(n, p)``.
        columns: Weights of labels, sum 1 in each picture, ``(n, c)``.
        spread: The largest less the smallest cost of each picture, ``(n)``.
    """

    cost: Tensor
    rows: Tensor
    columns: Tensor
    spread: Tensor

    @classmethod
    def of(cls, cost: Tensor, rows: Tensor, columns: Tensor) -> "Problem":
        """Check what came, take it to float32 at least, and make the weights sum to 1.

        Raises:
            InputError: shapes differ, there is no region or no label, a cost is not finite, or
                weights are negative, not finite or do not sum to 1.
        """
        sizes = check_shapes(cost=(cost, "n p c"), rows=(rows, "n p"), columns=(columns, "n c"))
        if not sizes["p"] or not sizes["c"]:
            raise InputError(
                f"cost must have one region and one label at least. Got {tuple(cost.shape)}."
            )
        types = (cost.dtype, rows.dtype, columns.dtype, torch.float32)
        wide = reduce(torch.promote_types, types)
        cost, rows, columns = (part.detach().to(wide) for part in (cost, rows, columns))
        spread = cost.amax((1, 2)) - cost.amin((1, 2))  # NaN where a cost is NaN or infinite
        _check_numbers(spread, rows, columns)
        rows, columns = (part / part.sum(1, keepdim=True) for part in (rows, columns))
        return cls(cost.contiguous(), rows, columns, spread)

    def take(self, some: Tensor) -> "Problem":
        """Only the pictures where this is True."""
        return Problem(self.cost[some], self.rows[some], self.columns[some], self.spread[some])


@dataclass(frozen=True)
class Goal:
    """What an iteration is after, and when it ends.

    Attributes:
        regularization: Weight of the entropy, > 0.
        tolerance: The error of a picture at which it is done, > 0.
        max_steps: After how many steps to give up, >= 1.
    """

    regularization: float
    tolerance: float
    max_steps: int

    def __post_init__(self) -> None:
        check_above_zero(**vars(self))


def _check_numbers(spread: Tensor, rows: Tensor, columns: Tensor) -> None:
    good = [spread.isfinite().all(), *map(_are_weights, (rows, columns))]
    finite, *weights = torch.stack(good).tolist()  # waits once for an accelerator
    if not finite:
        raise InputError(
            "cost must be finite numbers. Got NaN or infinity; where a pair is ruled out, give it "
            "a large cost."
        )
    for name, part, fine in zip(("rows", "columns"), (rows, columns), weights, strict=True):
        if not fine:
            sums = part.sum(1)
            raise InputError(
                f"{name} must be weights, not negative, that sum to 1 in each picture. Got numbers "
                f"from {float(part.min()):.3g} to {float(part.max()):.3g} with sums from "
                f"{float(sums.min()):.3g} to {float(sums.max()):.3g}; divide them by their sum."
            )


def _are_weights(weights: Tensor) -> Tensor:
    return (weights >= 0).all() & ((weights.sum(1) - 1).abs() <= SLACK).all()


def check_above_zero(**settings: float) -> None:
    """Refuse settings that must be greater than 0.

    Raises:
        ConfigError: one of them is not.
    """
    for name, value in settings.items():
        if not value > 0:
            raise ConfigError(f"{name} must be greater than 0. Got {value}.")
