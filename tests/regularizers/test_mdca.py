"""Mean predicted against mean observed presence, as plain loops."""

from statistics import mean

import pytest
import torch

from surelabel.records import TrainingStep
from surelabel.regularizers import mdca


def test_equals_loops_over_the_known_targets():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    targets = torch.rand(9, 4, generator=generator, dtype=torch.float64)
    known = torch.rand(9, 4, generator=generator) > 0.3
    known[:, 2] = False
    gaps = []
    for c in (0, 1, 3):
        rows = [r for r in range(9) if known[r, c]]
        predicted = mean(scores[r, c].sigmoid().item() for r in rows)
        gaps.append(abs(predicted - mean(targets[r, c].item() for r in rows)))
    got = mdca(TrainingStep(scores, None, targets, known))
    assert got.item() == pytest.approx(mean(gaps))


def test_a_label_predicted_as_often_as_it_is_there_costs_nothing_whatever_the_order():
    targets = torch.tensor([[1.0], [0.0], [0.0], [0.0]])
    scores = torch.full((4, 1), 0.25).logit()
    assert mdca(TrainingStep(scores, scores, targets, targets >= 0)).item() == pytest.approx(
        0, abs=1e-7
    )
