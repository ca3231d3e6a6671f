import json
import math
from pathlib import Path

import pytest
import torch
from torch import distributions

from surelabel.methods.variational.gaussian_mixture import GaussianMixture

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/variational.json").read_text())["kl"]


def mixture(*, requires_grad=False):
    """Return the recorded mixture, and its leaves."""
    means, log_variances = (
        torch.tensor(GOLDEN[key], dtype=torch.float64, requires_grad=requires_grad)
        for key in ("mu", "logvar")
    )
    logits = torch.tensor(GOLDEN["alpha"], dtype=torch.float64).log().requires_grad_(requires_grad)
    return GaussianMixture(means, log_variances, logits.softmax(0)), means, log_variances, logits


def test_the_bound_equals_the_recorded_mean_over_dimensions():
    bound = mixture()[0].divergence_bounds().item()
    assert bound == pytest.approx(GOLDEN["bound_mean"], rel=1e-12)
    assert 4 * bound == pytest.approx(GOLDEN["bound_sum"], rel=1e-12)


def test_the_bound_is_the_weighted_mean_of_the_divergences_of_the_components():
    latent = mixture()[0]
    by_torch = distributions.kl_divergence(
        distributions.Normal(latent.means, (latent.log_variances / 2).exp()),
        distributions.Normal(0.0, 1.0),
    )
    expected = (latent.weights[:, None] * by_torch).sum() / 4
    assert latent.divergence_bounds().item() == pytest.approx(expected.item(), rel=1e-12)


def test_gradients_of_the_bound_equal_the_recorded_ones():
    latent, *leaves = mixture(requires_grad=True)
    latent.divergence_bounds().backward()
    for leaf, name in zip(leaves, ("mu", "logvar", "mix_logits_log_alpha"), strict=True):
        recorded = torch.tensor(GOLDEN[f"grad_bound_mean_wrt_{name}"], dtype=torch.float64)
        torch.testing.assert_close(leaf.grad, recorded, rtol=1e-10, atol=1e-14)


def test_the_bound_exceeds_the_exact_divergence_by_at_most_the_entropy_of_the_components():
    latent = mixture()[0]
    for d, exact in enumerate(GOLDEN["exact_mixture_kl_1d_per_dim_quadrature"]):
        one = GaussianMixture(
            latent.means[:, d : d + 1], latent.log_variances[:, d : d + 1], latent.weights
        )
        bound = one.divergence_bounds().item()
        assert bound == pytest.approx(GOLDEN["bound_1d_per_dim"][d], rel=1e-12)
        assert exact <= bound <= exact + math.log(2)


def test_a_standard_normal_has_no_divergence():
    latent = GaussianMixture(torch.zeros(5, 3, 4), torch.zeros(5, 3, 4), torch.full((3,), 1 / 3))
    assert latent.divergence_bounds().tolist() == [0] * 5
