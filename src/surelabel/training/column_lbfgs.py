"""Minimize many independent problems of the same size, the columns of a matrix, with L-BFGS."""

from collections.abc import Callable

import torch
from torch import Tensor

ColumnObjective = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
HISTORY = 10  # steps and gradient changes that approximate the Hessian
MAX_ITERATIONS = 200
MAX_HALVINGS = 20  # halvings of a step that does not decrease the objective enough
SUFFICIENT_DECREASE = 1e-4  # fraction of the decrease that the slope predicts
ROUNDING = 8  # relative error of an objective, in units of the last place


def minimize_columns(
    objective: ColumnObjective, start: Tensor, *, gradient_scale: Tensor, tolerance: float
) -> Tensor:
    """Return parameters that minimize each column's objective, which depends on no other column.

    The steps of all columns are computed at once, but each column has a separate approximation of
    the Hessian and a separate step length. Steps are halved until the objective decreases enough
    (Armijo condition). A column is finished if its gradient is small, or if rounding errors prevent
    a further decrease. After 200 steps, the parameters of the other columns are returned as well.

    Args:
        objective: Function of parameters ``(p, m)`` and of the indices of m problems, ``(m,)``,
            that returns the values of these problems, ``(m,)``, and their gradients, ``(p, m)``.
        start: Initial parameters, ``(p, k)``.
        gradient_scale: Reference length of the gradient of each problem, ``(k,)``.
        tolerance: Length of the gradient at which a problem is finished, divided by its
            ``gradient_scale``, above 0.

    Returns:
        Parameters of each problem, ``(p, k)``.

    Source:
        Liu and Nocedal, On the Limited Memory BFGS Method for Large Scale Optimization,
        Mathematical Programming, 1989.

    Example:
        >>> squares = lambda x, columns: (((x - 3) ** 2).sum(dim=0), 2 * (x - 3))
        >>> start, scale = torch.zeros(1, 2), torch.ones(2)
        >>> minimize_columns(squares, start, gradient_scale=scale, tolerance=1e-3)
        tensor([[3., 3.]])
    """
    solution, columns = start.clone(), torch.arange(start.shape[1])
    parameters, (values, gradients) = start, objective(start, columns)
    steps, changes = list[Tensor](), list[Tensor]()
    is_stalled = torch.zeros_like(values, dtype=torch.bool)
    for _ in range(MAX_ITERATIONS):
        is_active = (gradients.norm(dim=0) > tolerance * gradient_scale[columns]) & ~is_stalled
        if not is_active.all():
            solution[:, columns] = parameters
            columns, values = columns[is_active], values[is_active]
            parameters, gradients = parameters[:, is_active], gradients[:, is_active]
            steps, changes = ([x[:, is_active] for x in past] for past in (steps, changes))
        if not len(columns):
            break
        direction = _descent_direction(gradients, steps, changes)
        step, new_values, new_gradients = _step_by_halving(
            objective, parameters, columns, values, (gradients * direction).sum(dim=0), direction
        )
        steps, changes = [*steps, step][-HISTORY:], [*changes, new_gradients - gradients][-HISTORY:]
        is_stalled = values - new_values <= torch.finfo(values.dtype).eps * values.abs()
        parameters, values, gradients = parameters + step, new_values, new_gradients
    solution[:, columns] = parameters
    return solution


def _descent_direction(gradients: Tensor, steps: list[Tensor], changes: list[Tensor]) -> Tensor:
    """Return the L-BFGS direction of each column, ``(p, m)``, along which the objective decreases.

    If the L-BFGS direction is not a descent direction, the negative gradient is returned, shortened
    to a length of at most 1. For each column, pairs of a step and a gradient change without
    positive curvature are ignored.
    """
    length: Tensor = gradients.norm(dim=0).clamp(min=1.0)
    steepest = -gradients / length
    if not steps:
        return steepest
    direction, coefficients = gradients, list[Tensor]()
    inverse_curvatures = [_inverse_curvature(*pair) for pair in zip(steps, changes, strict=True)]
    history = list(zip(steps, changes, inverse_curvatures, strict=True))
    for step, change, inverse in reversed(history):
        coefficients.append(inverse * (step * direction).sum(dim=0))
        direction = direction - coefficients[-1] * change
    step, change, inverse = history[-1]
    scale = (step * change).sum(dim=0) / change.square().sum(dim=0).clamp(min=1e-30)
    direction = direction * torch.where(inverse > 0, scale, torch.ones_like(scale))
    for (step, change, inverse), coefficient in zip(history, reversed(coefficients), strict=True):
        direction = direction + step * (coefficient - inverse * (change * direction).sum(dim=0))
    is_descent = (direction * gradients).sum(dim=0) > 0
    return torch.where(is_descent, -direction, steepest)


def _inverse_curvature(step: Tensor, change: Tensor) -> Tensor:
    """Return 1 / (step · change) of each column, ``(k,)``; 0 if the product is not positive."""
    product = (step * change).sum(dim=0)
    return torch.where(product > 1e-12, 1 / product.clamp(min=1e-12), torch.zeros_like(product))


def _step_by_halving(
    objective: ColumnObjective,
    parameters: Tensor,
    columns: Tensor,
    values: Tensor,
    slopes: Tensor,
    direction: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return a step with enough decrease, and the values and gradients after it.

    If no step length of a column leads to enough decrease, the step of the column is 0.

    Args:
        objective: Function of the parameters.
        parameters: Parameters before the step, ``(p, m)``.
        columns: Indices of the problems, ``(m,)``.
        values: Values before the step, ``(m,)``.
        slopes: Directional derivatives, ``(m,)``, at most 0.
        direction: Direction of the step, ``(p, m)``.
    """
    length = torch.ones_like(values)
    limit = values + ROUNDING * torch.finfo(values.dtype).eps * values.abs()
    for _ in range(MAX_HALVINGS):
        step = length * direction
        new_values, new_gradients = objective(parameters + step, columns)
        is_too_long = ~(new_values <= limit + SUFFICIENT_DECREASE * length * slopes)
        if not is_too_long.any():
            return step, new_values, new_gradients
        length = torch.where(is_too_long, length / 2, length)
    step = torch.where(is_too_long, 0.0, length) * direction
    return step, *objective(parameters + step, columns)
