"""The independent plan: average pooling."""

import torch

from surelabel.transport import average


def test_with_equal_weights_it_is_average_pooling():
    values = torch.randn(3, 8, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows, columns = torch.full((3, 8), 1 / 8).double(), torch.full((3, 4), 1 / 4).double()
    pooled = average(torch.zeros(3, 8, 4), rows, columns).apply(values) / columns
    torch.testing.assert_close(pooled, values.mean(1))


def test_both_sides_get_their_weights():
    rows, columns = torch.tensor([[0.2, 0.8]]), torch.tensor([[0.5, 0.1, 0.4]])
    plan = average(torch.rand(1, 2, 3), rows, columns)
    torch.testing.assert_close(plan.matrix.sum(2), rows)
    torch.testing.assert_close(plan.matrix.sum(1), columns)
    torch.testing.assert_close(plan.matrix[0], torch.outer(rows[0], columns[0]))


def test_no_memory_is_taken_for_the_kernel():
    half = torch.tensor([[0.5, 0.5]])
    plan = average(torch.zeros(1, 2, 2), half, half)
    assert plan.kernel.untyped_storage().nbytes() == 4
