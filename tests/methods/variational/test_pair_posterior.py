import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from surelabel.errors import ConfigError
from surelabel.losses import binary
from surelabel.methods.variational.component_choice import choose_components
from surelabel.methods.variational.folded_heads import fold_posterior_heads
from surelabel.methods.variational.pair_posterior import PairPosterior, SampledPairs
from surelabel.methods.variational.variance_losses import matched_variance_losses

RECORDED = json.loads((Path(__file__).parents[2] / "golden/variational.json").read_text())
GOLDEN = RECORDED["tiny_adapter"]
PARAMETERS = {  # recorded name: name of our parameter
    "W1": "trunk.weight",
    "b1": "trunk.bias",
    "Wmu": "mean_heads.weight",
    "bmu": "mean_heads.bias",
    "Wlv": "log_variance_heads.weight",
    "blv": "log_variance_heads.bias",
    "wdec": "decoder.weight",
    "bdec": "decoder.bias",
    "mix": "mixture_logits",
}


def recorded(value):
    return torch.tensor(value, dtype=torch.float64)


def assert_equal(actual, expected):
    torch.testing.assert_close(actual, recorded(expected), rtol=1e-9, atol=1e-12)


@pytest.fixture
def posterior():
    posterior = PairPosterior(4, hidden_width=5, s_scale=4.0, max_log_variance=10.0).double()
    shapes = {name: value.shape for name, value in posterior.state_dict().items()}
    posterior.load_state_dict(
        {
            ours: recorded(GOLDEN["weights"][name]).reshape(shapes[ours])
            for name, ours in PARAMETERS.items()
        }
    )
    return posterior


@pytest.fixture
def vectors():
    return [F.normalize(recorded(GOLDEN[name]), dim=1) for name in ("V_raw", "T_raw")]


def sample_with_recorded_noise(posterior, vectors):
    """Return the sample of the recorded noise, with latent vectors instead of scalar noise."""
    hidden = posterior.hidden(*vectors)
    latent = posterior.latent(hidden)
    noise = -(-recorded(GOLDEN["uniform"]).log()).log()
    weights = choose_components(posterior.mixture_logits, noise)
    z = latent.sample(weights, recorded(GOLDEN["eps"]))
    return SampledPairs(hidden, latent, weights.argmax(-1), posterior.decoder(z)[..., 0])


def test_every_tensor_of_the_forward_pass_equals_the_recorded_one(posterior, vectors):
    sample = sample_with_recorded_noise(posterior, vectors)
    assert_equal(posterior.s_scale * vectors[0][:, None] * vectors[1], GOLDEN["s"])
    assert_equal(sample.hidden, GOLDEN["hidden"])
    assert_equal(sample.latent.means, GOLDEN["mu"])
    assert_equal(sample.latent.log_variances, GOLDEN["logvar"])
    assert_equal(sample.latent.weights, GOLDEN["alpha"])
    assert sample.components.tolist() == GOLDEN["component"]
    assert_equal(sample.logits, GOLDEN["logit_sampled"])


def test_losses_and_gradients_equal_the_recorded_ones(posterior, vectors):
    sample, expected = sample_with_recorded_noise(posterior, vectors), GOLDEN["losses"]
    targets, known = torch.eye(3, dtype=torch.float64), torch.ones(3, 3, dtype=torch.bool)
    divergence = sample.latent.divergence_bounds().mean()
    losses = matched_variance_losses(
        sample, posterior.log_variances, targets, known, hard_negatives=1
    )
    p = sample.logits.sigmoid()
    assert divergence.item() == pytest.approx(expected["kl"], rel=1e-10)
    assert losses[0].item() == pytest.approx(expected["sigma_pos"], rel=1e-10)
    assert losses[1].item() == pytest.approx(expected["sigma_neg"], rel=1e-10)
    squared = (targets - p).square().mean().item() / 2
    assert squared == pytest.approx(expected["recon"], rel=1e-10)
    total = 0.0005 * divergence + binary(sample.logits, targets).mean() + sum(losses)
    total.backward()
    gradients = {name: posterior.get_parameter(ours).grad for name, ours in PARAMETERS.items()}
    for name, gradient in gradients.items():
        assert gradient.norm().item() == pytest.approx(GOLDEN["grad_norms"][name], rel=1e-9)
    assert_equal(gradients["wdec"][0], GOLDEN["grad_wdec"])
    assert_equal(gradients["mix"], GOLDEN["grad_mix"])
    assert_equal(gradients["blv"].view(2, 4), GOLDEN["grad_blv"])


def test_inference_equals_the_recorded_numbers(posterior, vectors):
    latent, expected = posterior.latent(posterior.hidden(*vectors)), GOLDEN["inference"]
    logits = posterior.logit_mixture(latent)
    assert_equal(logits.mean(), expected["logit_mixture_mean"])
    assert_equal(logits.mean().sigmoid(), expected["prob"])
    assert_equal(latent.mean_variances(), expected["u_arith_mean_sigma2"])
    assert_equal(latent.mean_log_variances(), expected["u_log_geo_mean"])
    assert_equal(logits.means, expected["component_logit"])
    assert_equal(logits.variances, expected["component_logit_var"])
    assert_equal(logits.variance(), expected["total_logit_variance"])
    assert_equal(logits.moderated_probabilities(), expected["prob_probit_moderated"])


def test_folded_heads_equal_the_recorded_vector_and_the_unfolded_outputs(posterior, vectors):
    heads, hidden = fold_posterior_heads(posterior), posterior.hidden(*vectors)
    assert_equal(heads.vectors[:, 0], GOLDEN["folded"]["score_vector"])
    assert heads.constants[0].item() == pytest.approx(GOLDEN["folded"]["score_const"], rel=1e-12)
    outputs = hidden @ heads.vectors + heads.constants
    latent = posterior.latent(hidden)
    expected = [posterior.logit_mixture(latent).mean(), latent.mean_log_variances()]
    torch.testing.assert_close(outputs, torch.stack(expected, dim=-1), rtol=0, atol=1e-14)


def test_scalar_samples_have_the_distribution_of_decoded_latent_samples(posterior, vectors):
    torch.manual_seed(0)
    images = vectors[0][:1].expand(40_000, -1)
    sample = posterior.sample_pairs(images, vectors[1][:1])
    weights = F.one_hot(sample.components, 2).double()
    decoded = posterior.decoder(
        sample.latent.sample(weights, torch.randn_like(sample.latent.means))
    )
    ours, theirs = (x.flatten().detach().sort().values for x in (sample.logits, decoded))
    quantiles = torch.arange(2_000, 40_000, 2_000)
    torch.testing.assert_close(ours[quantiles], theirs[quantiles], rtol=0, atol=0.1)
    expected = posterior.logit_mixture(sample.latent)
    assert ours.mean().item() == pytest.approx(expected.mean()[0].item(), abs=0.03)
    assert ours.var().item() == pytest.approx(expected.variance()[0].item(), rel=0.03)


def test_the_number_of_parameters_is_that_of_the_adapter_of_the_paper():
    with torch.device("meta"):
        posterior = PairPosterior(1024)
    count = sum(p.numel() for p in posterior.parameters())
    counts = RECORDED["param_counts"]
    assert count == counts["recommended_adapter_d1024_h1024"]
    assert count == pytest.approx(counts["paper_adapter"], abs=0.011e6 + 5_000)


def test_log_variances_are_limited():
    posterior = PairPosterior(3, max_log_variance=1.5)
    with torch.no_grad():
        posterior.log_variance_heads.bias.copy_(torch.tensor([50.0, -50.0, 0.0] * 2))
        posterior.log_variance_heads.weight.zero_()
    values = posterior.log_variances(torch.zeros(3))
    assert values.tolist() == [[1.5, -10.0, 0.0]] * 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_width": 0}, "hidden_width must be 1 or more; got 0"),
        ({"components": 0}, "components must be 1 or more; got 0"),
        ({"s_scale": 0.0}, "s_scale must be above 0, and finite; got 0"),
        ({"max_log_variance": 11.0}, r"max_log_variance must be in \[-5, 10\]; got 11"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        PairPosterior(4, **settings)


@pytest.mark.parametrize("hidden_width", [5, 16, 40])
def test_a_network_can_start_with_scaled_cosines(hidden_width):
    torch.manual_seed(0)
    posterior = PairPosterior(16, hidden_width=hidden_width, s_scale=3.0)
    posterior.start_with_cosines(scale=7.0, bias=-4.0)
    x, t = (F.normalize(torch.randn(12, 16), dim=1) for _ in range(2))
    logits = posterior.logit_mixture(posterior.latent(posterior.hidden(x, t))).mean()
    expected = (7 * x @ t.T - 4).flatten()
    assert torch.corrcoef(torch.stack([logits.flatten(), expected]))[0, 1] > 0.98
    torch.testing.assert_close(logits.flatten(), expected, rtol=0, atol=1.0)


def test_log_variances_outside_the_limits_can_return():
    posterior = PairPosterior(3, max_log_variance=1.5)
    with torch.no_grad():
        posterior.log_variance_heads.bias.fill_(50.0)
    posterior.log_variances(torch.zeros(3)).sum().backward()
    assert posterior.log_variance_heads.bias.grad.tolist() == [1.0] * 6
