import copy

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.links import Sigmoid
from surelabel.losses import binary
from surelabel.methods import CoOp, ZeroShot, copy_method_fit
from surelabel.records import Features
from surelabel.training import (
    FeatureBatches,
    Objective,
    objective_mean_over_known,
    run_training_loop,
)

NAMES = ["lion", "guitar", "sofa|couch"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def images(n=12):
    vectors = torch.randn(n, 128, generator=torch.Generator().manual_seed(0))
    return Features(F.normalize(vectors, dim=-1))


def trained(it):
    targets = (torch.arange(12)[:, None] % 3 == torch.arange(3)).float()
    known = targets == targets
    it.initialize(images(), targets, known, Sigmoid())
    run_training_loop(
        it,
        FeatureBatches(images(), targets, known, batch_size=4),
        objective=Objective(objective_mean_over_known(binary)),
        epochs=4,
        learning_rate=0.01,
        seed=3,
    )
    return it


def test_training_with_a_context_of_words_starts_at_the_zero_shot_scores(encoder):
    it = CoOp(encoder, NAMES, initial_context="a photo of a").eval()
    zero_shot = ZeroShot(encoder, NAMES)
    torch.testing.assert_close(it(images()), zero_shot(images()), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "shape"),
    [
        ({}, (16, 128)),
        ({"initial_context": "a photo of a"}, (4, 128)),
        ({"initial_context": "a blurry photo"}, (3, 128)),
        ({"context_length": 2, "class_specific": True}, (3, 2, 128)),
    ],
)
def test_only_the_context_and_a_shared_scale_and_bias_are_trained(settings, shape, encoder):
    it = CoOp(encoder, NAMES, **settings)
    shapes = {name: tuple(p.shape) for name, p in it.named_parameters() if p.requires_grad}
    assert shapes == {"context.vectors": shape, "level.log_slope": (), "level.bias": ()}


def test_a_context_of_words_of_another_number_than_its_length_is_random(encoder):
    torch.manual_seed(0)
    first = CoOp(encoder, NAMES, context_length=4).context.vectors
    assert first.std().item() == pytest.approx(0.02, rel=0.2)
    assert not torch.equal(
        first, CoOp(encoder, NAMES, initial_context="a photo of a").context.vectors
    )


def test_the_same_seed_gives_the_same_context(encoder):
    torch.manual_seed(5)
    start = CoOp(encoder, NAMES)
    first = trained(copy.deepcopy(start))
    torch.manual_seed(5)
    second = trained(CoOp(encoder, NAMES))
    assert torch.equal(first.context.vectors, second.context.vectors)
    assert not torch.equal(first.context.vectors, start.context.vectors)


def test_new_labels_use_the_learned_context(encoder):
    it, other = trained(CoOp(encoder, NAMES)), CoOp(encoder, ["bus", "lion"]).eval()
    copy_method_fit(it, other, encoder)
    with torch.no_grad():
        torch.testing.assert_close(other(images())[:, 1], it(images())[:, 0])
        torch.testing.assert_close(it.encode_words(["bus"]), other.tuned_texts()[:1])


def test_class_specific_contexts_belong_to_the_labels_of_the_fit(encoder):
    it = trained(CoOp(encoder, NAMES, class_specific=True))
    assert CoOp(encoder, NAMES).open_vocabulary
    assert not it.open_vocabulary
    assert not torch.equal(it.context.vectors[0], it.context.vectors[1])
    with pytest.raises(ConfigError, match=r"only for the labels of the fit.*class_specific=false"):
        it.encode_words(["bus"])


def test_cached_texts_follow_the_context(encoder):
    it = CoOp(encoder, NAMES).eval()
    with torch.no_grad():
        before = it.tuned_texts()
        it.context.vectors += 0.5
        assert not torch.allclose(it.context(), before)


@pytest.mark.parametrize("words", ["", "  "])
def test_a_context_without_words_is_random(words, encoder):
    vectors = CoOp(encoder, NAMES, initial_context=words).context.vectors
    assert vectors.shape == (16, 128)
    assert vectors.std().item() == pytest.approx(0.02, rel=0.2)
