import json
from pathlib import Path

import pytest
import torch

from surelabel.methods.variational.component_choice import choose_components, sample_gumbel_noise
from surelabel.methods.variational.gaussian_mixture import GaussianMixture

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/variational.json").read_text())["gumbel"]


def recorded(value):
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_choice_sample_and_gradient_equal_the_recorded_ones(temperature):
    expected = GOLDEN[f"tau_{temperature}"]
    logits = recorded(GOLDEN["logits"]).requires_grad_()
    weights = choose_components(logits, recorded(GOLDEN["gumbel"]), temperature=temperature)
    assert weights.argmax(-1).tolist() == expected["hard_index"]
    latent = GaussianMixture(recorded(GOLDEN["mu"]), recorded(GOLDEN["logvar"]), torch.ones(2) / 2)
    z = latent.sample(weights, recorded(GOLDEN["eps"]))
    torch.testing.assert_close(z, recorded(expected["z_hard"]), rtol=1e-12, atol=1e-14)
    z.sum().backward()
    torch.testing.assert_close(
        logits.grad,
        recorded(expected["grad_logits_of_sum_z_straight_through"]),
        rtol=1e-10,
        atol=1e-14,
    )


def test_components_are_chosen_with_the_probabilities_of_the_softmax():
    torch.manual_seed(0)
    logits = torch.tensor([0.5, -0.5, 1.0])
    noise = sample_gumbel_noise(40_000, 3, like=logits)
    frequencies = choose_components(logits, noise).mean(dim=0)
    torch.testing.assert_close(frequencies, logits.softmax(0), rtol=0, atol=0.01)


def test_weights_are_exactly_one_hot_at_a_low_temperature():
    weights = choose_components(torch.zeros(3), torch.tensor([[0.3, 0.1, 0.2]]), temperature=1e-3)
    assert weights.tolist() == [[1.0, 0.0, 0.0]]
