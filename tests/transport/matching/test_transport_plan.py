"""A plan in factors, and what it does when it is not there yet."""

from importlib import import_module

import pytest
import torch

from surelabel.errors import ConfigError, NotConverged
from surelabel.transport import TransportPlan, bipartite, sinkhorn


def drawn(images=3):
    generator = torch.Generator().manual_seed(0)
    cost = torch.rand(images, 20, 4, generator=generator, dtype=torch.float64)
    rows, columns = torch.full((images, 20), 1 / 20), torch.full((images, 4), 1 / 4)
    return cost, rows.double(), columns.double()


def unfinished():
    return sinkhorn(*drawn(), max_steps=2, tolerance=1e-9)


def test_a_plan_that_did_not_converge_says_so():
    plan = unfinished()
    assert not plan.converged.any()
    assert plan.steps.tolist() == [2, 2, 2]
    assert (plan.error > 1e-9).all()


@pytest.mark.parametrize(
    "use", [lambda plan: plan.matrix, lambda plan: plan.apply(drawn()[0])], ids=["matrix", "apply"]
)
def test_a_plan_that_did_not_converge_is_not_used(use):
    with pytest.raises(NotConverged, match=r"3 of 3 images .* in 2 steps.*Raise max_steps"):
        use(unfinished())


def test_one_image_that_did_not_converge_is_enough():
    cost, rows, columns = drawn()
    cost[1] *= 30
    plan = sinkhorn(cost, rows, columns, max_steps=30)
    assert plan.converged.tolist() == [True, False, True]
    with pytest.raises(NotConverged, match="1 of 3 images"):
        _ = plan.matrix


def test_as_far_as_it_came_it_can_be_used_on_purpose():
    plan = unfinished().accept_unconverged()
    cost, rows, columns = drawn()
    torch.testing.assert_close(plan.matrix.sum(1), columns)
    missed = (plan.matrix.sum(2) - rows).abs().sum(1)
    torch.testing.assert_close(plan.error, missed)
    torch.testing.assert_close(plan.apply(cost), (plan.matrix * cost).sum(1))


def test_values_keep_their_gradient_in_their_own_format():
    plan = sinkhorn(*(part.float() for part in drawn()))
    values = torch.ones(3, 20, 4, dtype=torch.float16, requires_grad=True)
    plan.apply(values).sum().backward()
    assert values.grad.dtype == torch.float16


@pytest.mark.parametrize("at_once", [1, 200, 2**26], ids=["one by one", "some", "all at once"])
def test_the_number_of_images_in_a_block_does_not_change_the_sums(at_once, monkeypatch):
    module = import_module("surelabel.transport.matching.transport_plan")
    monkeypatch.setattr(module, "CPU_BYTES_PER_BLOCK", at_once)
    plan, values = sinkhorn(*drawn()), drawn()[0]
    torch.testing.assert_close(plan.apply(values), (plan.matrix * values).sum(1))


def test_a_closed_form_took_no_steps():
    plan = TransportPlan.closed_form(
        torch.ones(1, 2, 2), torch.ones(1, 2) / 2, torch.ones(1, 2) / 2
    )
    assert (plan.steps.item(), plan.error.item(), plan.converged.item()) == (0, 0, True)


def test_shares_of_a_plan_by_logarithms_are_its_columns_too():
    cost, rows, columns = drawn()
    scale = torch.tensor([1.0, 30.0, 1.0])[:, None, None]  # the kernel of the second underflows
    plan = sinkhorn((cost * scale).float(), rows, columns, regularization=0.05, max_steps=10_000)
    assert plan.converged.all()
    shares = plan.column_shares((cost * scale).float())
    torch.testing.assert_close(shares * columns[:, None], plan.matrix, rtol=1e-3, atol=1e-6)


def test_shares_as_released_are_columns_of_the_plan():
    cost, rows, columns = drawn()
    plan = sinkhorn(cost, rows, columns, variant="code")
    torch.testing.assert_close(plan.column_shares(cost) * columns[:, None], plan.matrix)


def test_shares_of_a_plan_that_did_not_converge_are_refused():
    with pytest.raises(NotConverged, match="3 of 3 images"):
        unfinished().column_shares(drawn()[0])


def test_shares_of_a_plan_without_potentials_are_refused():
    cost, rows, columns = drawn()
    with pytest.raises(ConfigError, match=r"plan with region_potentials; .* Use sinkhorn"):
        bipartite(cost, rows, columns).column_shares(cost)
