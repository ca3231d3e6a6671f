"""Region matching with a fixed number of steps returns the plans of the iteration."""

import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.export.graphs.fixed_step_matching import FixedStepMatching, fixed_step_sinkhorn
from surelabel.methods.region_matching.region_matching import RegionMatching
from surelabel.transport import TRANSPORTS, sinkhorn

COSINES = 0.03 * torch.randn(4, 6, 3, generator=torch.Generator().manual_seed(0))
REFERENCE = 0.03 * torch.randn(4, 6, 5, generator=torch.Generator().manual_seed(1))
IS_NEW = torch.tensor([True, False, True])
supported = [name for name in TRANSPORTS if name != "bipartite"]


@pytest.mark.parametrize("transport", supported)
def test_pooled_cosines_and_shares_are_those_of_the_iteration(transport):
    iterated, fixed = (kind(transport=transport) for kind in (RegionMatching, FixedStepMatching))
    tolerance = {"atol": 1e-4, "rtol": 1e-3}
    pooled = fixed.pool_similarities(COSINES)
    torch.testing.assert_close(pooled, iterated.pool_similarities(COSINES), **tolerance)
    for arguments in ((), (REFERENCE, IS_NEW)):
        shares = fixed.region_shares(COSINES, *arguments)
        torch.testing.assert_close(shares, iterated.region_shares(COSINES, *arguments), **tolerance)
    more = {"reference": REFERENCE, "is_new": IS_NEW}
    pooled = fixed.pool_similarities(COSINES, **more)
    torch.testing.assert_close(pooled, iterated.pool_similarities(COSINES, **more), **tolerance)


def test_each_plan_stops_at_the_error_at_which_the_iteration_stops():
    cost = torch.rand(50, 6, 3, generator=torch.Generator().manual_seed(2))
    rows, columns = torch.full((50, 6), 1 / 6), torch.full((50, 3), 1 / 3)
    expected = sinkhorn(cost, rows, columns, max_steps=1000)
    assert len(expected.steps.unique()) > 3
    plan = fixed_step_sinkhorn(cost, rows, regularization=0.1, steps=300)
    exact = sinkhorn(cost, rows, columns, tolerance=1e-6, max_steps=3000)
    from_expected, from_exact = (
        (plan.matrix - other.matrix).abs().amax((1, 2)) for other in (expected, exact)
    )
    assert from_expected.median() < 1e-7
    assert from_exact.median() > 1e-6  # further steps would change the plan


def test_one_step_is_the_first_step_of_sinkhorn():
    cost, rows = torch.rand(2, 4, 3), torch.full((2, 4), 0.25)
    first = sinkhorn(cost, rows, torch.full((2, 3), 1 / 3), max_steps=1).accept_unconverged()
    plan = fixed_step_sinkhorn(cost, rows, regularization=0.1, steps=1)
    torch.testing.assert_close(plan.matrix, first.matrix)


def test_a_plan_that_cannot_be_extended_is_computed_for_all_labels():
    fixed = FixedStepMatching(is_extended=False)
    assert fixed.needs_all_labels
    shares = fixed.region_shares(COSINES, REFERENCE, IS_NEW)
    torch.testing.assert_close(shares, fixed.region_shares(COSINES))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"transport": "bipartite"}, "transport bipartite cannot be exported"),
        ({"regularization": 0.024}, r"at least 0\.025; got 0\.024"),
    ],
)
def test_a_transport_that_is_no_graph_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        FixedStepMatching(**settings)


def test_a_small_regularization_is_valid_without_an_iteration():
    assert FixedStepMatching(transport="softmax", regularization=0.001).transport == "softmax"
