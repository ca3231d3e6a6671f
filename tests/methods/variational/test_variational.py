from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.losses import binary
from surelabel.methods import METHODS, EstimatesPairUncertainty, ScoresPairs, UsesLadder
from surelabel.methods.variational.all_pairs import all_pair_scores
from surelabel.optimizers import OPTIMIZERS
from surelabel.records import Features
from surelabel.training import (
    Objective,
    PairBatches,
    objective_mean_over_known,
    run_training_loop,
)

Variational = METHODS["variational"]
NAMES = ["lion", "guitar"]
KNOWN = torch.ones(6, 6, dtype=torch.bool)
TARGETS = torch.eye(6)


def vectors(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(*shape, generator=generator), dim=-1)


def method_for_vectors(**settings):
    """Return a method for image vectors of width 8 and text vectors of width 5."""
    torch.manual_seed(0)
    return Variational(load_encoder("features:8"), [], text_width=5, width=16, **settings)


MATCHES = TARGETS[:5].bool() | (torch.arange(5)[:, None] + torch.arange(6) == 9)
IMAGES, TEXTS = Features(vectors(1, 6, 8)), Features(vectors(2, 6, 5))


def losses_of_step(method):
    torch.manual_seed(1)
    scores = method.training_pair_scores(IMAGES, TEXTS)
    return scores, method.training_losses(TARGETS, KNOWN)


def fitted(steps, **settings):
    """Return a method that is fitted on six pairs, of which the last two have the same image."""
    method = method_for_vectors(**settings)
    image_rows = torch.tensor([0, 1, 2, 3, 4, 4])
    source = PairBatches(IMAGES, TEXTS, image_rows, torch.arange(6), batch_size=6)
    objective = Objective(objective_mean_over_known(binary), method=method)
    run_training_loop(
        method,
        source,
        objective=objective,
        epochs=steps,
        learning_rate=0.02,
        optimizer=OPTIMIZERS["adamp"],
    )
    return method


def test_six_pairs_are_learned_and_matching_pairs_have_the_lowest_variance():
    method = fitted(100, detach_trunk=True)
    scores, variances = (f(IMAGES, TEXTS) for f in (method.pair_scores, method.pair_variances))
    assert torch.equal(scores[:5] > 0, MATCHES)
    assert variances[:5][MATCHES].mean() < variances[:5][~MATCHES].mean()
    assert float(method.noise_inflation.running_probability) > 0.3


def test_without_the_variance_losses_the_reconstruction_remains():
    method = fitted(60, beta=0.0)
    assert torch.equal(method.pair_scores(IMAGES, TEXTS)[:5] > 0, MATCHES)


def test_a_method_for_pairs_scores_them_with_an_uncertainty():
    method = method_for_vectors()
    assert isinstance(method, ScoresPairs)
    assert isinstance(method, EstimatesPairUncertainty)
    scores, variances = method.pair_scores(IMAGES, TEXTS), method.pair_variances(IMAGES, TEXTS)
    assert scores.shape == variances.shape == (6, 6)
    assert (variances > 0).all()
    assert not scores.requires_grad


def test_scores_and_variances_are_those_of_the_posterior_without_folding():
    method = method_for_vectors(components=3)
    with torch.no_grad():
        x, t = method.image_vectors(IMAGES), method.text_vectors(TEXTS)
        latent = method.posterior.latent(method.posterior.hidden(x, t))
    expected = method.posterior.logit_mixture(latent).mean()
    torch.testing.assert_close(method.pair_scores(IMAGES, TEXTS), expected)
    torch.testing.assert_close(
        method.pair_variances(IMAGES, TEXTS), latent.mean_log_variances().exp()
    )
    logits, log_variances = all_pair_scores(method.folded_heads(), x, t)
    torch.testing.assert_close(torch.from_numpy(logits), expected)
    torch.testing.assert_close(torch.from_numpy(log_variances), latent.mean_log_variances())


def test_the_weights_scale_the_loss_terms():
    terms = {
        name: losses_of_step(method_for_vectors(**weights))[1].item()
        for name, weights in {
            "none": {"alpha": 0.0, "beta": 0.0},
            "divergence": {"alpha": 2.0, "beta": 0.0},
            "positive": {"alpha": 0.0, "gamma": 0.0},
            "both": {"alpha": 0.0, "gamma": 1.0},
            "all": {"alpha": 2.0, "beta": 3.0, "gamma": 0.5},
        }.items()
    }
    negative = terms["both"] - terms["positive"]
    assert terms["none"] == 0
    expected = terms["divergence"] + 3 * (terms["positive"] + negative / 2)
    assert terms["all"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("detach_trunk", [False, True])
def test_variance_losses_reach_the_trunk_unless_it_is_detached(detach_trunk):
    method = method_for_vectors(alpha=0.0, detach_trunk=detach_trunk)
    losses_of_step(method)[1].backward()
    assert method.posterior.log_variance_heads.weight.grad.abs().sum() > 0
    assert bool(method.posterior.trunk.weight.grad.any()) != detach_trunk
    assert method.posterior.decoder.weight.grad is None


def test_training_scores_are_sampled_with_the_mean_of_the_scores():
    method = method_for_vectors()
    torch.nn.init.constant_(method.posterior.log_variance_heads.bias, -4.0)
    with torch.no_grad():
        samples = [method.training_pair_scores(IMAGES, TEXTS) for _ in range(400)]
    assert not torch.equal(samples[0], samples[1])
    mean = torch.stack(samples).mean(dim=0)
    torch.testing.assert_close(mean, method.pair_scores(IMAGES, TEXTS), rtol=0, atol=0.2)


def test_unknown_pairs_do_not_change_the_losses():
    known = KNOWN.clone()
    known[2, 4] = False
    losses = []
    for target in (0.0, 1.0):
        method, targets = method_for_vectors(), TARGETS.clone()
        targets[2, 4] = target
        torch.manual_seed(1)
        method.training_pair_scores(IMAGES, TEXTS)
        losses.append(method.training_losses(targets, known).item())
    assert losses[0] == losses[1]


def test_noise_inflation_is_reported_when_training_ends():
    method = method_for_vectors(max_log_variance=10.0)
    with torch.no_grad():
        method.posterior.log_variance_heads.bias.fill_(8.0)
    source = PairBatches(IMAGES, TEXTS, torch.arange(6), torch.arange(6), batch_size=6)
    objective = Objective(objective_mean_over_known(binary), method=method)
    with pytest.warns(UserWarning, match="Noise inflation was detected in training"):
        run_training_loop(method, source, objective=objective, epochs=210, learning_rate=1e-6)


def test_labels_are_scored_like_sentences():
    encoder = load_encoder("tiny-vit")
    method = Variational(encoder, NAMES)
    images = Features(vectors(3, 4, encoder.width))
    sentences = Features(encoder.encode_sentences([f"a photo of a {name}." for name in NAMES]))
    torch.testing.assert_close(method(images), method.pair_scores(images, sentences))


def test_generalized_pooling_reads_patches_and_tokens():
    encoder = load_encoder("tiny-vit")
    torch.manual_seed(0)
    method = Variational(encoder, NAMES, generalized_pooling=True)
    assert method.needs == ("patches",)
    assert Variational(encoder, NAMES).needs == ()
    images = Features(vectors(3, 4, encoder.width), patches=vectors(4, 4, 9, encoder.width))
    texts = encoder.encode_sentence_tokens([f"a photo of a {name}." for name in NAMES])
    scores = method.pair_scores(images, texts)
    torch.testing.assert_close(method(images), scores)
    assert not torch.allclose(
        method.pair_scores(Features(images.pooled, images.patches * -1), texts), scores
    )
    method.training_pair_scores(images, texts).sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in method.pooling.parameters())


def test_vectors_without_patches_are_refused_with_generalized_pooling():
    method = method_for_vectors(generalized_pooling=True)
    with pytest.raises(ConfigError, match="generalized_pooling needs vectors of patches"):
        method.pair_scores(IMAGES, TEXTS)


def test_labels_need_texts_of_the_width_of_the_captions():
    with pytest.raises(ConfigError, match="Remove text_width"):
        Variational(load_encoder("tiny-vit"), NAMES, text_width=5)


SENTENCES = [f"a photo of a {name}." for name in NAMES]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


@pytest.fixture(scope="module")
def pixels(encoder):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(3, 3, *encoder.preprocess_cfg["size"], generator=generator)


def block_features(method, encoder, pixels):
    """Return the features of images and sentences in front of the trained blocks."""
    first, depth = method.ladder_blocks
    images = encoder.encode_ladder_features(pixels, first_block=first, depth=depth)
    return images, encoder.encode_sentence_block_tokens(SENTENCES, depth=depth)


def trained_method(encoder, **settings):
    torch.manual_seed(0)
    return Variational(encoder, NAMES, **{"trained_blocks": 1} | settings).eval()


@pytest.mark.parametrize("pooling", [False, True])
@pytest.mark.parametrize("trained_blocks", [1, 2])
def test_before_training_trained_blocks_give_the_scores_of_the_frozen_towers(
    trained_blocks, pooling, encoder, pixels
):
    settings = {"trained_blocks": trained_blocks, "generalized_pooling": pooling}
    method = trained_method(encoder, **settings)
    frozen = trained_method(encoder, **settings | {"trained_blocks": 0})
    assert method.needs == ("ladder",)
    assert isinstance(method, UsesLadder)
    assert not isinstance(frozen, UsesLadder)
    features = block_features(method, encoder, pixels)
    texts = encoder.encode_sentence_tokens(SENTENCES)
    with torch.no_grad():
        for function in ("pair_scores", "pair_variances"):
            expected = getattr(frozen, function)(encoder.encode_patches(pixels), texts)
            found = getattr(method, function)(*features)
            torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        scores = method.pair_scores(*features)
        torch.testing.assert_close(method(features[0]), scores, atol=1e-5, rtol=1e-5)


def test_training_changes_the_copies_of_the_blocks_and_not_the_encoder(encoder, pixels):
    before = {name: value.clone() for name, value in encoder.model.state_dict().items()}
    method = trained_method(encoder)
    start = {name: value.clone() for name, value in method.state_dict().items()}
    images, texts = block_features(method, encoder, pixels[:2])
    run_training_loop(
        method,
        PairBatches(images, texts, torch.arange(2), torch.arange(2), batch_size=2),
        objective=Objective(objective_mean_over_known(binary), method=method),
        epochs=2,
        learning_rate=0.01,
        optimizer=OPTIMIZERS["adamp"],
    )
    for name, value in method.state_dict().items():
        assert name.startswith("noise_inflation.") or not torch.equal(value, start[name]), name
    after = encoder.model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert not any(parameter.requires_grad for parameter in encoder.model.parameters())
    assert sum("towers.images.blocks" in name for name in start) == sum(
        "visual.transformer.resblocks.0." in name for name in before
    )


def test_trained_blocks_have_the_learning_rates_of_towers(encoder):
    method = trained_method(encoder)
    scales = {"posterior": 0.1, "towers.texts": 0.1, "towers.images": 0.01}
    assert method.learning_rate_scales == scales
    assert trained_method(encoder, trained_blocks=0).learning_rate_scales == {"posterior": 0.1}


def test_the_weights_of_trained_blocks_are_saved_and_serve_other_labels(encoder, pixels):
    method = trained_method(encoder)
    with torch.no_grad():
        for parameter in method.towers.parameters():
            parameter.mul_(1.1)
    other = Variational(encoder, NAMES[::-1], trained_blocks=1)
    other.load_state_dict(method.state_dict())
    images = block_features(method, encoder, pixels)[0]
    with torch.no_grad():
        torch.testing.assert_close(other(images), method(images).flip(1), atol=1e-5, rtol=1e-5)
        assert not torch.allclose(method(images), trained_method(encoder)(images))


def test_without_labels_trained_blocks_give_no_scores(encoder, pixels):
    method = Variational(encoder, [], trained_blocks=1)
    assert method(block_features(method, encoder, pixels)[0]).shape == (3, 0)


def test_features_without_tokens_are_refused_with_trained_blocks(encoder, pixels):
    method = trained_method(encoder)
    images, texts = block_features(method, encoder, pixels)
    with pytest.raises(ConfigError, match=r"need their input tokens, features\.layers\[-2\]"):
        method.pair_scores(Features(images.pooled), texts)
    with pytest.raises(ConfigError, match=r"set method\.trained_blocks=0"):
        method.pair_scores(images, replace(texts, layers=None))


@pytest.mark.parametrize(
    ("name", "message"),
    [("tiny-rn", "need a plain ViT"), ("features:8", "has no ViT blocks")],
)
def test_encoders_without_blocks_are_refused_with_trained_blocks(name, message):
    with pytest.raises(ConfigError, match=message):
        Variational(load_encoder(name), [], trained_blocks=1)


def test_more_trained_blocks_than_a_tower_has_are_refused(encoder):
    with pytest.raises(ConfigError, match="trained_blocks must be a number of blocks from 1 to"):
        Variational(encoder, NAMES, trained_blocks=99)
