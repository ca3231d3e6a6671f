"""Re-weighting of regions, label by label."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import ConfigError
from surelabel.transport import softmax


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.floats(0.05, 3),
    st.integers(0, 5),
)
def test_equals_the_formula_by_hand(costs, temperature, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.rand(len(costs), generator=generator, dtype=torch.float64) + 0.1
    rows = rows / rows.sum()
    one = torch.ones(1, 1, dtype=torch.float64)
    got = softmax(
        torch.tensor(costs).double()[None, :, None], rows[None], one, temperature=temperature
    )
    parts = [u * math.exp(-c / temperature) for u, c in zip(rows.tolist(), costs, strict=True)]
    assert got.matrix[0, :, 0].tolist() == pytest.approx([x / sum(parts) for x in parts])


def test_a_label_does_not_depend_on_the_others():
    generator = torch.Generator().manual_seed(0)
    cost, rows = torch.rand(2, 9, 4, generator=generator), torch.full((2, 9), 1 / 9)
    many = softmax(cost, rows, torch.full((2, 4), 1 / 4))
    one = softmax(cost[:, :, :1], rows, torch.ones(2, 1))
    torch.testing.assert_close(many.matrix[:, :, :1] * 4, one.matrix)


@pytest.mark.parametrize("temperature", [1e-30, 1e30], ids=["cold", "hot"])
def test_extreme_temperatures_choose_the_best_or_all(temperature):
    cost, half = torch.tensor([[[0.0], [1.0]]]), torch.tensor([[0.5, 0.5]])
    got = softmax(cost, half, torch.ones(1, 1), temperature=temperature).matrix.flatten()
    assert got.tolist() == ([1, 0] if temperature < 1 else [0.5, 0.5])


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_refuses_a_temperature_that_is_not_above_zero(temperature):
    half = torch.tensor([[0.5, 0.5]])
    with pytest.raises(ConfigError, match="temperature must be greater than 0"):
        softmax(torch.zeros(1, 2, 2), half, half, temperature=temperature)
