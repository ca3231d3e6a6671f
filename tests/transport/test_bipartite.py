"""One region for each label, against all assignments there are."""

from itertools import permutations, product

import pytest
import torch

from surelabel.transport import bipartite


def equal(images, size):
    return torch.full((images, size), 1 / size, dtype=torch.float64)


def cheapest(cost, columns, ways):
    """The least total cost of all ways to give each label a region."""
    return min(sum(columns[j] * cost[i][j] for j, i in enumerate(regions)) for regions in ways)


@pytest.mark.parametrize("seed", range(5))
def test_no_assignment_of_one_region_each_is_cheaper(seed):
    generator = torch.Generator().manual_seed(seed)
    cost = torch.rand(1, 5, 3, generator=generator, dtype=torch.float64)
    columns = torch.rand(1, 3, generator=generator, dtype=torch.float64)
    columns = columns / columns.sum()
    plan = bipartite(cost, equal(1, 5), columns).matrix
    least = cheapest(cost[0].tolist(), columns[0].tolist(), permutations(range(5), 3))
    assert (plan * cost).sum().item() == pytest.approx(least)
    assert ((plan > 0).sum(1) == 1).all()
    assert ((plan > 0).sum(2) <= 1).all()


@pytest.mark.parametrize("labels", [4, 5, 6])
def test_more_labels_than_regions_share_them_as_evenly_as_can_be(labels):
    cost = torch.rand(1, 3, labels, generator=torch.Generator().manual_seed(labels)).double()
    columns = equal(1, labels)
    plan = bipartite(cost, equal(1, 3), columns).matrix
    ways = [w for w in product(range(3), repeat=labels) if all(w.count(i) <= 2 for i in range(3))]
    least = cheapest(cost[0].tolist(), columns[0].tolist(), ways)
    assert (plan * cost).sum().item() == pytest.approx(least)
    assert ((plan > 0).sum(2) <= 2).all()


def test_regions_without_weight_leave_their_labels_to_others():
    cost = torch.tensor([[[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]])
    plan = bipartite(cost, torch.tensor([[0.0, 1.0]]), torch.full((1, 3), 1 / 3))
    torch.testing.assert_close(plan.matrix[0, 1], torch.full((3,), 1 / 3))
