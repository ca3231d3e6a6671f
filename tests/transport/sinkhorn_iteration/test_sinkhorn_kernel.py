"""The iteration by torch, as an accelerator runs it, against numpy, as a processor does."""

import numpy as np
import pytest
import torch

from surelabel.transport.matching.transport_problem import SinkhornSettings
from surelabel.transport.sinkhorn_iteration.sinkhorn_kernel import iterate_sinkhorn_kernel_scalings


@pytest.mark.parametrize("is_accelerated", [False, True])
@pytest.mark.parametrize("max_steps", [1, 7, 1000])
def test_torch_and_numpy_give_the_same(max_steps, is_accelerated):
    generator = np.random.default_rng(0)
    scores = -8 * generator.uniform(size=(6, 15, 4))
    rows, columns = generator.dirichlet(np.ones(15), 6), np.full((6, 4), 1 / 4)
    goal = SinkhornSettings(1.0, 1e-6, max_steps, is_accelerated)
    in_torch = iterate_sinkhorn_kernel_scalings(
        torch, *map(torch.tensor, (scores, rows, columns)), goal
    )
    in_numpy = iterate_sinkhorn_kernel_scalings(np, scores.copy(), rows, columns, goal)
    for one, other in zip(in_torch, in_numpy, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-9, atol=1e-12)
