import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.features import encode_sentence_features
from surelabel.losses import binary
from surelabel.methods import TaI, TextScorer, copy_method_fit
from surelabel.records import Features
from surelabel.training import (
    FeatureBatches,
    Objective,
    objective_mean_over_known,
    run_training_loop,
)

NAMES = ["lion", "guitar"]
SENTENCES = ["a lion.", "a guitar on a hill", "a lion with a guitar", "guitar"]
TARGETS = torch.tensor([[1.0, 0], [0, 1], [1, 1], [0, 1]])
KNOWN = torch.ones(4, 2, dtype=torch.bool)


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def units(seed, *shape):
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return F.normalize(vectors, dim=-1)


def images(n=2):
    return Features(units(0, n, 128), patches=units(1, n, 6, 128), grid=(2, 3))


def trained(encoder, source):
    torch.manual_seed(0)
    it = TaI(encoder, NAMES)
    run_training_loop(
        it,
        source,
        objective=Objective(objective_mean_over_known(binary)),
        epochs=4,
        learning_rate=0.01,
    )
    return it


SLOPES, BIASES = (0.5, 0.4, 0.8), (-2.0, -1.0, -3.0)  # of the mean, global and local scores


def by_hand(it, encoder, whole, parts, scale, column):
    """Return the global and the local score of one label, with loops over regions."""
    reference = TextScorer(encoder, NAMES).reference

    def relative(x, text):
        others = [math.exp(encoder.scale * float(x @ r)) for r in reference]
        return encoder.scale * float(x @ text) - math.log(sum(others) / len(others))

    with torch.no_grad():
        text, local_text = it.global_context()[column], it.local_context()[column]
    weights = [math.exp(scale * float(x @ local_text)) for x in parts]
    local = sum(w * relative(x, local_text) for w, x in zip(weights, parts, strict=True))
    return relative(whole, text), local / sum(weights)


def moved(encoder, **settings):
    """Return a method whose contexts differ from each other and from their initial values."""
    it = TaI(encoder, NAMES, **settings).eval()
    with torch.no_grad():
        it.global_context.vectors += 0.02 * units(3, 4, 128)
        it.local_context.vectors -= 0.02 * units(4, 4, 128)
        levels = (it.level, *it.branch_levels)
        for level, slope, bias in zip(levels, SLOPES, BIASES, strict=True):
            level.log_slope.fill_(math.log(slope))
            level.bias.fill_(bias)
    return it


@pytest.mark.parametrize("spatial_scale", [0.0, 40.0])
def test_the_score_of_an_image_is_the_mean_of_the_global_and_the_local_score(
    spatial_scale, encoder
):
    it = moved(encoder, spatial_scale=spatial_scale)
    with torch.no_grad():
        found = it(images())
    for row in range(2):
        for column in range(2):
            whole, parts = images().pooled[row], images().patches[row]
            mean = sum(by_hand(it, encoder, whole, parts, spatial_scale, column)) / 2
            assert found[row, column].item() == pytest.approx(0.5 * mean - 2, abs=1e-3)


def test_a_sentence_is_scored_by_its_vector_and_its_tokens_without_padding(encoder):
    it = moved(encoder, token_scale=50.0)
    features = encoder.encode_sentence_tokens(SENTENCES)
    with torch.no_grad():
        heads = it.training_scores(features, TARGETS, KNOWN)
    assert heads.shape == (3, 4, 2)
    for row in (0, 3):  # with padding
        parts = features.patches[row][features.patch_mask[row]]
        whole, local = by_hand(it, encoder, features.pooled[row], parts, 50.0, 1)
        expected = [0.4 * whole - 1, 0.8 * local - 3, 0.5 * (whole + local) / 2 - 2]
        assert heads[:, row, 1].tolist() == pytest.approx(expected, abs=1e-3)


def test_the_mean_of_both_scores_trains_only_its_scale_and_bias(encoder):
    it = moved(encoder)
    features = encoder.encode_sentence_tokens(SENTENCES)
    it.training_scores(features, TARGETS, KNOWN)[2].sum().backward()
    trained = {name for name, p in it.named_parameters() if p.grad is not None and p.grad.any()}
    assert trained == {"level.log_slope", "level.bias"}


class EncodedAgain(FeatureBatches):
    """Encode the sentences of a batch anew each time the batch is used."""

    def __init__(self, encoder):
        super().__init__(Features(torch.arange(4.0)[:, None]), 1 - TARGETS, KNOWN, batch_size=2)
        self.encoder = encoder

    def batches(self, generator, skip=0):
        for batch in super().batches(generator, skip):
            rows = batch.features.pooled[:, 0].long().tolist()
            found = self.encoder.encode_sentence_tokens([SENTENCES[row] for row in rows])
            yield replace(batch, features=replace(found, **half_precision(found)))


def half_precision(features):
    return {
        part: F.normalize(getattr(features, part).half().float(), dim=-1)
        for part in ("pooled", "patches")
    }


def test_training_on_stored_vectors_equals_encoding_the_sentences_in_each_step(encoder):
    stored = encode_sentence_features(encoder, SENTENCES)
    first = trained(encoder, FeatureBatches(stored, 1 - TARGETS, KNOWN, batch_size=2))
    second = trained(encoder, EncodedAgain(encoder))
    start = TaI(encoder, NAMES).global_context.vectors
    assert (first.global_context.vectors - start).abs().max() > 1e-3
    for name, values in first.state_dict().items():
        torch.testing.assert_close(values, second.state_dict()[name], atol=1e-5, rtol=0)


def test_new_labels_are_scored_with_the_contexts_of_the_fit(encoder):
    it = moved(encoder)
    other = TaI(encoder, ["sofa|couch", "guitar"]).eval()
    copy_method_fit(it, other, encoder)
    with torch.no_grad():
        torch.testing.assert_close(other(images())[:, 1], it(images())[:, 1])


def test_a_heat_map_is_the_local_score_of_each_patch(encoder):
    it = moved(encoder)
    patch = images().patches[1, 4]
    expected = by_hand(it, encoder, patch, [patch], 0.0, 0)[1]
    assert it.heat_maps(images())[1, 0, 1, 1].item() == pytest.approx(0.5 * expected - 2, abs=1e-3)


@pytest.mark.parametrize("setting", ["token_scale", "spatial_scale"])
@pytest.mark.parametrize("value", [-1.0, math.inf])
def test_a_scale_out_of_range_is_refused(setting, value, encoder):
    with pytest.raises(ConfigError, match=f"{setting} must be 0 or more"):
        TaI(encoder, NAMES, **{setting: value})
