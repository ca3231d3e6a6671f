"""The variant on log-odds."""

import numpy as np
import pytest
import torch

from surelabel.records import TrainingStep
from surelabel.regularizers import class_covariance, class_covariance_of_logits


def test_where_all_is_absent_it_is_the_correlation_of_numpy():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(20, 5, generator=generator, dtype=torch.float64)
    names = torch.eye(5, dtype=torch.float64)
    step = TrainingStep(z, z, torch.zeros(20, 5), torch.ones(20, 5, dtype=torch.bool), names)
    expected = np.corrcoef(z.numpy(), rowvar=False)[~np.eye(5, dtype=bool)]
    got = class_covariance_of_logits(step, epsilon=0.0)
    assert got.item() == pytest.approx((expected**2).mean())


def test_saturated_probabilities_have_a_gradient():
    generator = torch.Generator().manual_seed(1)
    z = (torch.randn(20, 5, generator=generator) - 30).requires_grad_()
    step = TrainingStep(
        z, z, torch.zeros(20, 5), torch.ones(20, 5, dtype=torch.bool), torch.ones(5, 1)
    )
    pulls = [
        torch.autograd.grad(regularizer(step), z)[0].abs().max()
        for regularizer in (class_covariance_of_logits, class_covariance)
    ]
    assert pulls[0] > 1e-3 > 1e-6 > pulls[1]
