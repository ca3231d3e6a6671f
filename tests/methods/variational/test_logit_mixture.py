import pytest
import torch
from torch import nn

from surelabel.methods.variational.gaussian_mixture import GaussianMixture
from surelabel.methods.variational.logit_mixture import LogitMixture


def test_moments_equal_those_of_many_decoded_samples():
    torch.manual_seed(0)
    decoder = nn.Linear(3, 1)
    latent = GaussianMixture(torch.randn(2, 3), torch.randn(2, 3) / 2, torch.tensor([0.3, 0.7]))
    component = torch.multinomial(latent.weights, 200_000, replacement=True)
    deviations = (latent.log_variances / 2).exp()[component]
    logits = decoder(latent.means[component] + deviations * torch.randn(200_000, 3))
    mixture = LogitMixture.of_latent(latent, decoder)
    assert mixture.mean().item() == pytest.approx(logits.mean().item(), abs=0.01)
    assert mixture.variance().item() == pytest.approx(logits.var().item(), rel=0.01)
    probability = mixture.moderated_probabilities().item()
    assert probability == pytest.approx(logits.sigmoid().mean().item(), abs=0.01)


def test_a_logit_without_variance_has_a_finite_gradient():
    variances = torch.zeros(1, requires_grad=True)
    mixture = LogitMixture(torch.zeros(1), variances, torch.ones(1))
    mixture.sample(torch.ones(1), torch.randn(1)).backward()
    assert variances.grad.isfinite().all()
