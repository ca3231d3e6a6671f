import torch
import torch.nn.functional as F

from surelabel.config import Choice, Run
from surelabel.encoders import load_encoder
from surelabel.methods import CoOp, KgCoOp
from surelabel.recognizer.fitting import FittingData, fit_recognizer_method
from surelabel.records import Features

NAMES = ["lion", "guitar", "sofa|couch"]
WORDS = {"initial_context": "a photo of a"}  # the initial texts are the frozen ones
COOP, KGCOOP = Choice("coop", WORDS), Choice("kgcoop", WORDS)


def distance_after_a_fit(**run):
    """Return one minus the mean cosine of learned and frozen texts, after the fit of a run."""
    encoder = load_encoder("tiny-vit")
    vectors = torch.randn(12, 128, generator=torch.Generator().manual_seed(0))
    targets = (torch.arange(12)[:, None] % 3 == torch.arange(3)).float()
    data = FittingData(
        [""] * 12, Features(F.normalize(vectors, dim=-1)), targets, targets == targets
    )
    run = Run(epochs=4, batch_size=4, learning_rate=0.01, seed=3, **run)
    fitted = fit_recognizer_method(run, encoder, NAMES, data)
    frozen = CoOp(encoder, NAMES, initial_context="a photo of a").eval().tuned_texts()
    return (1 - (fitted.tuned_texts() * frozen).sum(dim=1)).mean().item()


def test_the_regularizer_of_the_recipe_keeps_the_texts_near_the_frozen_ones():
    assert KgCoOp.recipe.regularizers == {"knowledge": 8.0}
    free = distance_after_a_fit(method=COOP)
    assert distance_after_a_fit(method=KGCOOP) < 0.5 * free


def test_the_weight_of_a_run_replaces_that_of_the_recipe():
    knowledge = Choice("knowledge")
    free = distance_after_a_fit(method=COOP)
    none = distance_after_a_fit(method=KGCOOP, regularizer=knowledge, regularizer_weight=0.0)
    assert none == free
    same = distance_after_a_fit(method=COOP, regularizer=knowledge, regularizer_weight=8.0)
    assert same == distance_after_a_fit(method=KGCOOP)


def test_another_regularizer_is_added():
    kept = distance_after_a_fit(method=KGCOOP)
    both = distance_after_a_fit(method=KGCOOP, regularizer=Choice("mdca"), regularizer_weight=0.5)
    free = distance_after_a_fit(method=COOP)
    assert both != kept
    assert both < 0.7 * free
