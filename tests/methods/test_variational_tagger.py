import numpy as np
import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.links import Sigmoid
from surelabel.losses import binary
from surelabel.methods import METHODS, EstimatesUncertainty, copy_method_fit
from surelabel.records import Features
from surelabel.training import (
    FeatureBatches,
    Objective,
    objective_mean_over_known,
    run_training_loop,
)

VariationalTagger = METHODS["variational_tagger"]
NAMES = ["lion", "guitar", "pizza", "bus"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


@pytest.fixture(scope="module")
def data(encoder):
    """Return features, targets, labels and ambiguous images, of which each occurs twice.

    An ambiguous image is near the text of one label, which is positive only once. The other images
    have no positive label.
    """
    generator = torch.Generator().manual_seed(0)
    label = torch.randint(4, (100,), generator=generator).repeat(2)
    texts = encoder.encode_labels(NAMES, ["a photo of a {}."])
    directions = F.normalize(torch.randn(100, encoder.width, generator=generator), dim=1)
    is_ambiguous = torch.arange(200) % 2 == 1
    vectors = directions.repeat(2, 1) + 4 * is_ambiguous[:, None] * texts[label]
    is_positive = is_ambiguous & (torch.arange(200) < 100)
    targets = F.one_hot(label, 4) * is_positive[:, None].float()
    return Features(F.normalize(vectors, dim=1)), targets, label, is_ambiguous


@pytest.fixture(scope="module")
def fitted(encoder, data):
    features, targets, *_ = data
    torch.manual_seed(0)
    method = VariationalTagger(encoder, NAMES)
    known = targets == targets
    method.initialize(features, targets, known, Sigmoid())
    run_training_loop(
        method,
        FeatureBatches(features, targets, known, batch_size=40),
        objective=Objective(objective_mean_over_known(binary), method=method),
        epochs=30,
        learning_rate=0.01,
    )
    return method


def test_residual_errors_are_the_squared_errors_of_ambiguous_labels_and_of_all_others(fitted, data):
    features, targets, label, is_ambiguous = data
    assert isinstance(fitted, EstimatesUncertainty)
    residuals = fitted.residual_errors(features)
    errors = (targets - fitted(features).sigmoid()).square()
    ambiguous = F.one_hot(label, 4).bool() & is_ambiguous[:, None]
    assert errors[ambiguous].mean().item() == pytest.approx(0.25, abs=0.08)
    for group in (ambiguous, ~ambiguous):
        expected = errors[group].mean().item()
        assert residuals[group].mean().item() == pytest.approx(expected, abs=0.05)


def test_residual_errors_start_at_the_bernoulli_variance(encoder, data):
    features, targets, *_ = data
    method = VariationalTagger(encoder, NAMES)
    method.initialize(features, targets, targets == targets, Sigmoid())
    p = method(features).sigmoid()
    torch.testing.assert_close(method.residual_errors(features), p * (1 - p), rtol=1e-4, atol=1e-6)


def test_match_variances_are_lowest_for_the_label_of_an_image(fitted, data):
    features, _, label, is_ambiguous = data
    variances = fitted.match_variances(features)
    assert (variances > 0).all()
    is_lowest = variances.argmin(dim=1) == label
    assert is_lowest[is_ambiguous].float().mean() > 0.95


def test_images_without_labels_have_negative_scores(fitted, data):
    features, _, _, is_ambiguous = data
    assert (fitted(features)[~is_ambiguous] < 0).float().mean() > 0.98


def test_the_outputs_are_those_of_the_network_without_folding(fitted, data):
    features = Features(data[0].pooled[:7])
    with torch.no_grad():
        vectors = fitted.projection(features.pooled, fitted.texts)
        hidden = fitted.posterior.hidden(*vectors)
        latent = fitted.posterior.latent(hidden)
        scores = fitted.posterior.logit_mixture(latent).mean()
        match = fitted.match_head(hidden)[..., 0].exp()
    torch.testing.assert_close(fitted(features), scores, rtol=0, atol=1e-5)
    torch.testing.assert_close(fitted.match_variances(features), match, rtol=1e-3, atol=1e-6)
    p = scores.sigmoid()
    excess = fitted.residual_head(hidden).detach()[..., 0]
    np.testing.assert_allclose(
        fitted.residual_errors(features),
        ((p * (1 - p)).logit() + excess).sigmoid(),
        rtol=0,
        atol=1e-5,
    )


def test_labels_that_are_added_have_scores_and_uncertainties(fitted, encoder, data):
    method = VariationalTagger(encoder, [*NAMES, "cow"])
    copy_method_fit(fitted, method, encoder)
    features = Features(data[0].pooled[:3])
    for name in ("forward", "residual_errors", "match_variances"):
        values, before = getattr(method, name)(features), getattr(fitted, name)(features)
        assert values.shape == (3, 5)
        torch.testing.assert_close(values[:, :4], before, rtol=1e-4, atol=1e-5)


def test_training_starts_at_the_prevalence_and_the_cosines_are_calibrated(encoder, data):
    features, targets, *_ = data
    method = VariationalTagger(encoder, NAMES)
    method.initialize(features, targets, targets == targets, Sigmoid())
    assert method(features).sigmoid().mean().item() == pytest.approx(
        targets.mean().item(), abs=0.15
    )
    probabilities = method.cosine_scores(features).sigmoid()
    assert probabilities.mean().item() == pytest.approx(targets.mean().item(), abs=0.01)


def test_only_known_targets_count_and_the_trunk_is_detached(encoder, data):
    features, targets, *_ = data
    losses = []
    for value in (0.0, 1.0):
        torch.manual_seed(0)
        method, changed = VariationalTagger(encoder, NAMES, alpha=0.0), targets.clone()
        changed[3, 2] = value
        known = torch.ones_like(targets, dtype=torch.bool)
        known[3, 2] = False
        method.training_scores(features, changed, known)
        losses.append(method.training_losses(changed, known))
    assert losses[0].item() == losses[1].item()
    losses[1].backward()
    assert not method.posterior.trunk.weight.grad.any()
    assert method.match_head.weight.grad.abs().sum() > 0
