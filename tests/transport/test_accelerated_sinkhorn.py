"""Accelerated steps against the plain iteration on easy and hard problems."""

import numpy as np
import pytest
import torch

from surelabel.transport import accelerated_sinkhorn

N_IMAGES = 40


def random_weights(random, size, concentration):
    return random.dirichlet(np.full(size, concentration), N_IMAGES)


def uniform_costs(random):
    """Costs in [0, 1], about equal weights."""
    regions, labels = random.integers(1, 40, 2)
    cost = random.random((N_IMAGES, regions, labels))
    return cost, random_weights(random, regions, 5), random_weights(random, labels, 5), 0.1


def large_cost_ranges(random):
    """Costs that differ by up to 100 times the regularization."""
    cost, rows, columns, _ = uniform_costs(random)
    return cost, rows, columns, 0.01


def unequal_weights(random):
    regions, labels = random.integers(2, 40, 2)
    cost = random.random((N_IMAGES, regions, labels))
    rows, columns = random_weights(random, regions, 0.2), random_weights(random, labels, 0.3)
    return cost, rows, columns, 0.1


def near_permutations(random):
    """A region and a label of each pair have nearly no other choice."""
    size = random.integers(2, 20)
    cost = random.random((N_IMAGES, size, size)) * 0.3 + (1 - np.eye(size))
    return cost, *(random_weights(random, size, 100) for _ in "uv"), 0.1


def zero_weights(random):
    cost, rows, columns, regularization = uniform_costs(random)
    for weights in (rows, columns):
        weights[:, 1:] *= random.random(weights[:, 1:].shape) < 0.6
        weights /= weights.sum(1, keepdims=True)
    return cost, rows, columns, regularization


def one_region(random):
    cost = random.random((N_IMAGES, 1, 7))
    return cost, np.ones((N_IMAGES, 1)), random_weights(random, 7, 1), 0.1


def one_label(random):
    cost = random.random((N_IMAGES, 7, 1))
    return cost, random_weights(random, 7, 1), np.ones((N_IMAGES, 1)), 0.1


FAMILIES = [
    uniform_costs,
    large_cost_ranges,
    unequal_weights,
    near_permutations,
    zero_weights,
    one_region,
    one_label,
]
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)


def plain_sinkhorn(cost, rows, columns, regularization, tolerance, max_steps):
    """Sinkhorn's iteration without acceleration: plan and number of steps of each image."""
    kernel = np.exp(-cost / regularization)
    row_sums, active = kernel.sum(2), np.ones(len(cost), bool)
    left, steps = np.zeros_like(rows), np.zeros(len(cost), int)
    for _ in range(max_steps):
        left = np.where(active[:, None], rows / row_sums, left)
        right = columns / np.einsum("np,npc->nc", left, kernel)
        row_sums = np.einsum("npc,nc->np", kernel, right)
        steps += active
        active = abs(left * row_sums - rows).sum(1) > tolerance
        if not active.any():
            break
    return left[:, :, None] * kernel * right[:, None], steps


def accelerated(cost, rows, columns, regularization, tolerance, max_steps):
    tensors = map(torch.from_numpy, (cost, rows, columns))
    return accelerated_sinkhorn(
        *tensors, regularization=regularization, tolerance=tolerance, max_steps=max_steps
    )


@families
def test_the_plan_is_that_of_the_plain_iteration_run_to_the_end(family):
    for seed in range(4):
        *problem, _ = family(np.random.default_rng(seed))
        plan = accelerated(*problem, 0.2, 1e-13, 2000).accept_unconverged()
        expected, _ = plain_sinkhorn(*problem, 0.2, 1e-13, 10_000)
        assert (abs(expected.sum(2) - problem[1]).sum(1) < 1e-12).all()
        np.testing.assert_allclose(plan.matrix.numpy(), expected, rtol=0, atol=1e-11)


@families
def test_the_number_of_steps_does_not_exceed_that_of_the_plain_iteration_by_more_than_two(family):
    fewer = []
    for seed in range(8):
        problem = family(np.random.default_rng(seed))
        steps = accelerated(*problem, 1e-4, 3000).steps.numpy()
        _, plain_steps = plain_sinkhorn(*problem, 1e-4, 3000)
        fewer.append(plain_steps - steps)
    fewer = np.concatenate(fewer)
    assert fewer.min() >= -2
    assert np.mean(fewer < 0) <= 0.01


def test_the_plan_of_an_image_is_independent_of_its_batch():
    random = np.random.default_rng(0)
    *problem, regularization = zero_weights(random)
    together = accelerated(*problem, regularization, 1e-7, 1000)
    for image in range(0, N_IMAGES, 7):
        alone = accelerated(*(part[[image]] for part in problem), regularization, 1e-7, 1000)
        assert alone.steps == together.steps[image]
        assert torch.equal(alone.matrix[0], together.matrix[image])


@pytest.mark.parametrize("tolerance", [1e-4, 3e-6])
def test_in_float32_the_error_reaches_the_tolerance(tolerance):
    *problem, regularization = unequal_weights(np.random.default_rng(0))
    problem = [part.astype(np.float32) for part in problem]
    plan = accelerated(*problem, regularization, tolerance, 2000)
    assert plan.converged.all()
    assert (plan.matrix.double().sum(2) - torch.from_numpy(problem[1])).abs().sum(1).max() < (
        1.5 * tolerance
    )


def test_regions_without_weight_get_no_weight_and_do_not_change_the_other_regions():
    random = np.random.default_rng(0)
    cost, rows, columns, _ = uniform_costs(random)
    plan = accelerated(cost, rows, columns, 0.1, 1e-10, 3000).matrix
    cost = np.concatenate([cost, random.random(cost.shape)], axis=1)
    rows = np.concatenate([rows, np.zeros_like(rows)], axis=1)
    with_empty = accelerated(cost, rows, columns, 0.1, 1e-10, 3000).matrix
    regions = plan.shape[1]
    assert (with_empty[:, regions:] == 0).all()
    torch.testing.assert_close(with_empty[:, :regions], plan, rtol=0, atol=1e-9)
