import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from surelabel.training.column_lbfgs import minimize_columns

rng = np.random.default_rng(0)
SQUARES = [m @ m.T + np.eye(6) for m in rng.normal(size=(4, 6, 6))]
TARGETS = rng.normal(size=(6, 4))


def quadratic(parameters, columns):
    """Return x · A x / 2 - b · x of each column, with another A and b for each column."""
    matrices = torch.tensor(np.array(SQUARES))[columns]
    products = torch.einsum("kij,jk->ik", matrices, parameters)
    targets = torch.tensor(TARGETS)[:, columns]
    return (parameters * (products / 2 - targets)).sum(dim=0), products - targets


def rosenbrock(parameters, _columns):
    x = parameters.detach().requires_grad_()
    values = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    (gradients,) = torch.autograd.grad(values.sum(), x)
    return values.detach(), gradients


def solve(objective, start, tolerance=1e-6):
    scale = torch.ones(start.shape[1], dtype=start.dtype)
    return minimize_columns(objective, start, gradient_scale=scale, tolerance=tolerance)


def test_each_column_of_a_quadratic_is_solved_like_a_linear_system():
    solution = solve(quadratic, torch.zeros(6, 4, dtype=torch.float64))
    expected = np.stack([np.linalg.solve(a, b) for a, b in zip(SQUARES, TARGETS.T, strict=True)], 1)
    np.testing.assert_allclose(solution.numpy(), expected, atol=1e-4)


def test_a_curved_valley_is_solved_like_scipy():
    starts = np.array([[-1.2, 1.0], [0.0, 0.0], [1.5, -1.0]]).T
    solution = solve(rosenbrock, torch.tensor(starts))
    for column, start in zip(solution.numpy().T, starts.T, strict=True):
        other = minimize(
            lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2, start, method="L-BFGS-B"
        )
        np.testing.assert_allclose(column, other.x, atol=1e-2)


def test_a_column_does_not_depend_on_the_other_columns():
    together = solve(rosenbrock, torch.tensor([[-1.2, 3.0], [1.0, -4.0]], dtype=torch.float64))
    alone = solve(rosenbrock, torch.tensor([[-1.2], [1.0]], dtype=torch.float64))
    torch.testing.assert_close(together[:, :1], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("tolerance", [1e-6, 1e9])
def test_a_finished_column_keeps_its_start(tolerance):
    start = torch.ones(2, 1, dtype=torch.float64) * (1 if tolerance < 1 else 5)
    assert torch.equal(solve(rosenbrock, start, tolerance), start)
