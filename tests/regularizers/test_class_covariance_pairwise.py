"""The variant with means and variances of every pair's own images."""

import numpy as np
import pytest
import torch

from surelabel.records import TrainingStep
from surelabel.regularizers import class_covariance_pairwise


def test_equals_the_value_computed_by_hand(small):
    got = class_covariance_pairwise(small, epsilon=0.0, min_images=1)
    assert got.item() == pytest.approx(1.111325, abs=1e-6)


def test_every_pair_is_the_correlation_of_numpy_over_its_own_images():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(30, 4, generator=generator, dtype=torch.float64)
    targets = (torch.rand(30, 4, generator=generator) > 0.6).double()
    step = TrainingStep(scores, scores, targets, targets >= 0, torch.eye(4, dtype=torch.float64))
    p, absent, squares = scores.sigmoid().numpy(), targets.numpy() == 0, []
    for i in range(4):
        for j in range(i):
            both = absent[:, i] & absent[:, j]
            squares.append(np.corrcoef(p[both, i], p[both, j])[0, 1] ** 2)
    got = class_covariance_pairwise(step, epsilon=0.0)
    assert got.item() == pytest.approx(np.mean(squares))
