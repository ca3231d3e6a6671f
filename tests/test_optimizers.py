import pytest
import torch

from surelabel.optimizers import OPTIMIZERS
from surelabel.tables import configure_table_entry


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_minimizes_a_quadratic(name):
    place = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    optimizer = OPTIMIZERS[name]([{"params": [place], "weight_decay": 0.0}], 0.05)
    for _ in range(500):
        optimizer.zero_grad()
        place.square().sum().backward()
        optimizer.step()
    assert place.abs().max() < 0.01


def test_momentum_is_what_makes_the_second_step_longer():
    steps = []
    for momentum in (0.0, 0.9):
        place = torch.nn.Parameter(torch.tensor([1.0]))
        optimizer = configure_table_entry(OPTIMIZERS, "sgd", momentum=momentum)(
            [{"params": [place]}], lr=0.1
        )
        for _ in range(2):
            place.grad = torch.ones(1)
            optimizer.step()
        steps.append(1 - place.item())
    assert steps == pytest.approx([0.2, 0.29])
