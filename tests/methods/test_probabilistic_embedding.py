import math

import pytest
import torch
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence

from surelabel.encoders.image_only.precomputed_features import PrecomputedFeatures
from surelabel.errors import ConfigError
from surelabel.methods import ProbabilisticEmbedding
from surelabel.records import Features

IMAGES, TEXTS = Features(F.normalize(torch.randn(4, 6), dim=1)), Features(torch.randn(3, 6))


def random_method(**settings):
    torch.manual_seed(0)
    method = ProbabilisticEmbedding(PrecomputedFeatures(6), [], **settings)
    with torch.no_grad():
        for parameter in method.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return method.eval()


def distributions(method):
    means = method.projection(IMAGES.pooled, TEXTS.pooled)
    networks = method.image_log_variance, method.text_log_variance
    vectors = IMAGES.pooled, TEXTS.pooled
    return [
        Normal(mean, network(x).exp().sqrt())
        for mean, network, x in zip(means, networks, vectors, strict=True)
    ]


def test_the_score_is_the_expected_distance_of_samples():
    method = random_method()
    scores = method.pair_scores(IMAGES, TEXTS)
    images, texts = distributions(method)
    for i in range(4):
        for j in range(3):
            mean = (images.mean[i] - texts.mean[j]).square().sum()
            variance = images.variance[i].sum() + texts.variance[j].sum()
            expected = method.bias - method.log_scale.exp() * (mean + variance)
            torch.testing.assert_close(scores[i, j], expected, atol=1e-4, rtol=1e-4)
            found = method.pair_variances(IMAGES, TEXTS)[i, j]
            torch.testing.assert_close(found, variance / 6, atol=1e-5, rtol=1e-5)


def test_initial_variances_are_equal_and_as_set():
    method = ProbabilisticEmbedding(PrecomputedFeatures(6), [], initial_variance=0.4)
    variances = method.pair_variances(IMAGES, TEXTS)
    torch.testing.assert_close(variances, torch.full((4, 3), 0.8 / 6))


def test_the_divergence_is_that_of_torch():
    method = random_method(divergence_weight=2.0, pseudo_positive_weight=0.0)
    method.training_pair_scores(IMAGES, TEXTS)
    normals = distributions(method)
    standard = Normal(torch.zeros(()), torch.ones(()))
    expected = sum(kl_divergence(normal, standard).mean() for normal in normals)
    targets = torch.eye(4, 3)
    found = method.training_losses(targets, targets >= 0)
    torch.testing.assert_close(found, 2 * expected, atol=1e-4, rtol=1e-4)


def test_pseudo_positives_score_at_least_as_a_positive_of_their_image():
    method = random_method(divergence_weight=0.0, pseudo_positive_weight=0.5)
    scores = method.training_pair_scores(IMAGES, TEXTS).detach()
    targets = torch.zeros(4, 3)
    targets[0, scores[0].argmin()] = 1  # all others of this image are pseudo-positives
    targets[1, scores[1].argmax()] = 1  # no other one is
    expected = 0.0
    for i in range(4):
        for j in range(3):
            positive = i == 0 or targets[i, j] == 1
            expected += F.softplus(-scores[i, j] if positive else scores[i, j]).item() / 12
    assert math.isclose(
        method.training_losses(targets, targets >= 0).item(), expected / 2, abs_tol=1e-5
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"initial_variance": 0.0}, "initial_variance must be above 0, and finite; got 0.0"),
        ({"initial_scale": -1.0}, "initial_scale must be above 0"),
        ({"divergence_weight": -0.1}, "divergence_weight must be 0 or more"),
        ({"pseudo_positive_weight": -0.1}, "pseudo_positive_weight must be 0 or more"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        ProbabilisticEmbedding(PrecomputedFeatures(6), [], **settings)
