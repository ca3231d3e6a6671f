"""What every transport must do. A new line in TRANSPORTS is tested here with no more work."""

import pytest
import torch

from surelabel.errors import InputError
from surelabel.transport import TRANSPORTS, bipartite

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
SIZES = [(4, 12, 5), (4, 5, 12), (4, 7, 1), (4, 1, 6), (1, 1, 1)]
every = pytest.mark.parametrize("transport", TRANSPORTS.values(), ids=TRANSPORTS.keys())
with_potentials = pytest.mark.parametrize(
    "transport", [pytest.param(t, id=name) for name, t in TRANSPORTS.items() if t is not bipartite]
)
sizes = pytest.mark.parametrize("size", SIZES, ids=str)


def weights(generator, *shape):
    drawn = 0.2 + torch.rand(*shape, generator=generator, dtype=torch.float64)
    return drawn / drawn.sum(1, keepdim=True)


def problem(images=4, regions=12, labels=5, seed=0):
    """Costs in [0, 1] and unequal weights."""
    generator = torch.Generator().manual_seed(seed)
    cost = torch.rand(images, regions, labels, generator=generator, dtype=torch.float64)
    return cost, weights(generator, images, regions), weights(generator, images, labels)


def close(one, other, tolerance=1e-12):
    torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


@every
@sizes
def test_a_plan_is_finite_not_negative_and_of_mass_one(transport, size):
    plan = transport(*problem(*size))
    assert plan.matrix.shape == size
    assert plan.matrix.isfinite().all()
    assert (plan.matrix >= 0).all()
    close(plan.matrix.sum((1, 2)), torch.ones(size[0], dtype=torch.float64))


@every
@sizes
def test_each_label_gets_its_weight(transport, size):
    cost, rows, columns = problem(*size)
    close(transport(cost, rows, columns).matrix.sum(1), columns)


@every
@sizes
def test_says_how_it_went_in_each_image(transport, size):
    plan = transport(*problem(*size))
    for part in (plan.steps, plan.error, plan.converged):
        assert part.shape == size[:1]
    assert not plan.steps.is_floating_point()
    assert plan.converged.all()


@every
@sizes
def test_applied_to_values_it_is_the_sum_over_regions(transport, size):
    plan = transport(*problem(*size))
    values = torch.randn(size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    close(plan.apply(values), (plan.matrix * values).sum(1))


@with_potentials
@sizes
def test_shares_of_the_labels_of_the_plan_are_its_columns(transport, size):
    cost, rows, columns = problem(*size)
    plan = transport(cost, rows, columns)
    close(plan.column_shares(cost) * columns[:, None], plan.matrix)


@with_potentials
def test_shares_of_another_label_do_not_depend_on_what_else_is_asked_for(transport):
    cost, rows, columns = problem()
    plan, others = transport(cost, rows, columns), problem(labels=9, seed=1)[0].requires_grad_()
    shares = plan.column_shares(others)
    close(shares.sum(1), torch.ones(4, 9, dtype=torch.float64))
    close(plan.column_shares(others[:, :, 6:7]), shares[:, :, 6:7])
    assert not shares.requires_grad


@every
def test_gradients_flow_to_values_and_not_to_costs(transport):
    cost, rows, columns = (part.requires_grad_() for part in problem())
    plan = transport(cost, rows, columns)
    values = torch.ones_like(cost).detach().requires_grad_()
    assert torch.autograd.gradcheck(plan.apply, values)
    plan.apply(values).sum().backward()
    close(values.grad, plan.matrix)
    assert cost.grad is None
    assert rows.grad is None
    assert columns.grad is None


@every
def test_order_of_regions_labels_and_images_does_not_matter(transport):
    cost, rows, columns = problem()
    generator = torch.Generator().manual_seed(2)
    n, p, c = (torch.randperm(size, generator=generator) for size in cost.shape)
    moved = transport(cost[n][:, p][:, :, c], rows[n][:, p], columns[n][:, c])
    close(moved.matrix, transport(cost, rows, columns).matrix[n][:, p][:, :, c])


@every
def test_a_image_does_not_depend_on_its_batch(transport):
    cost, rows, columns = problem()
    cost[1:] *= 3  # others take more steps
    together = transport(cost, rows, columns)
    alone = transport(cost[:1], rows[:1], columns[:1])
    close(alone.matrix, together.matrix[:1], 1e-15)
    assert alone.steps == together.steps[0]


@every
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_works_in_float32_or_better_whatever_comes_in(transport, dtype):
    given = [part.to(dtype) for part in problem()]
    plan = transport(*given)
    assert plan.matrix.dtype == torch.promote_types(dtype, torch.float32)
    exact = transport(*(part.double() for part in given))
    close(plan.matrix.double(), exact.matrix, 1e-6)


@every
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_changes_nothing(transport, dtype):
    given = [part.float() for part in problem()]
    plan, values = transport(*given), given[0].to(dtype)
    expected = plan.apply(values)
    with torch.autocast("cpu", dtype=dtype):
        same = transport(*given)
        assert torch.equal(same.matrix, plan.matrix)
        assert torch.equal(same.apply(values), expected)


@every
def test_what_has_no_weight_has_no_part(transport):
    cost, rows, columns = problem()
    rows, columns = rows.clone(), columns.clone()
    rows[:, 3] = 0
    columns[:, 2] = 0
    plan = transport(cost, rows / rows.sum(1, keepdim=True), columns / columns.sum(1, keepdim=True))
    assert not plan.matrix[:, 3].any()
    assert not plan.matrix[:, :, 2].any()
    close(plan.matrix.sum((1, 2)), torch.ones(4, dtype=torch.float64))


@every
def test_a_constant_added_to_all_costs_of_a_image_changes_nothing(transport):
    cost, rows, columns = problem()
    for constant in (-1000, 1000):
        more = transport(cost + constant, rows, columns)
        close(more.matrix, transport(cost, rows, columns).matrix, 1e-9)


@every
def test_no_image_gives_no_plan(transport):
    plan = transport(*problem(0))
    assert plan.matrix.shape == (0, 12, 5)
    assert plan.apply(torch.zeros(0, 12, 5)).shape == (0, 5)


@every
def test_changes_nothing_outside_itself(transport):
    given = problem()
    before = [part.clone() for part in given]
    transport(*given)
    assert torch.is_grad_enabled()
    assert all(map(torch.equal, before, given))


@every
def test_says_all_shapes_when_they_differ(transport):
    cost, rows, _ = problem()
    with pytest.raises(InputError, match=r"\(4, 12, 5\).*\(4, 12\).*\(4, 6\)"):
        transport(cost, rows, torch.ones(4, 6) / 6)


@every
@pytest.mark.parametrize("shape", [(2, 0, 3), (2, 3, 0)], ids=str)
def test_refuses_no_region_and_no_label(transport, shape):
    n, p, c = shape
    with pytest.raises(InputError, match="one region and one label"):
        transport(torch.zeros(shape), torch.zeros(n, p), torch.zeros(n, c))


@every
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_refuses_costs_that_are_not_finite(transport, value):
    cost, rows, columns = problem()
    cost[2, 3, 1] = value
    with pytest.raises(InputError, match="cost must contain only finite"):
        transport(cost, rows, columns)


@every
@pytest.mark.parametrize("value", [-0.1, 2.0, torch.nan, torch.inf])
@pytest.mark.parametrize("name", ["rows", "columns"])
def test_refuses_weights_that_are_none(transport, name, value):
    parts = dict(zip(("cost", "rows", "columns"), problem(), strict=True))
    parts[name][1, 0] = value
    with pytest.raises(InputError, match=f"{name} must be weights.*Divide {name} by their sums"):
        transport(**parts)


@every
def test_refuses_values_of_another_shape(transport):
    plan = transport(*problem())
    with pytest.raises(InputError, match="values must have axes"):
        plan.apply(torch.zeros(4, 12, 6))
