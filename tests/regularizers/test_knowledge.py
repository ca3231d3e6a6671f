import pytest
import torch

from surelabel.records import TrainingStep
from surelabel.regularizers import knowledge

FROZEN = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])


def step_of(tuned, frozen=FROZEN):
    zeros = torch.zeros(2, 3)
    return TrainingStep(zeros, None, zeros, zeros == 0, texts=frozen, tuned_texts=tuned)


def test_the_value_is_one_minus_the_mean_cosine():
    tuned = torch.tensor([[0.0, 1.0], [0.6, 0.8], [0.6, 0.8]])
    cosines = [0.0, 0.8, 1.0]
    assert knowledge(step_of(tuned)).item() == pytest.approx(1 - sum(cosines) / 3)


def test_opposite_texts_cost_two():
    assert knowledge(step_of(-FROZEN)).item() == pytest.approx(2)


def test_it_is_half_the_mean_squared_distance_of_unit_vectors():
    tuned = torch.nn.functional.normalize(FROZEN + torch.tensor([0.3, -0.2]), dim=1)
    distances = (tuned - FROZEN).square().sum(dim=1)
    assert knowledge(step_of(tuned)).item() == pytest.approx(distances.mean().item() / 2)
