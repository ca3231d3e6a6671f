import math

import pytest
import torch

from surelabel.losses import binary


def test_equals_the_formula():
    scores, targets = torch.tensor([[-2.0, 0.0, 3.0]]), torch.tensor([[1.0, 0.0, 0.25]])
    p = [1 / (1 + math.exp(-x)) for x in (-2, 0, 3)]
    mixed = -0.25 * math.log(p[2]) - 0.75 * math.log(1 - p[2])
    expected = [-math.log(p[0]), -math.log(1 - p[1]), mixed]
    torch.testing.assert_close(binary(scores, targets), torch.tensor([expected]))


def test_a_certain_mistake_costs_its_log_odds():
    assert binary(torch.tensor([[1e4]]), torch.zeros(1, 1)).item() == pytest.approx(1e4)
