"""The loss against the paper, written as slowly and plainly as possible, and the authors' code."""

import json
import math
from itertools import product
from pathlib import Path

import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.links import Focal, Sigmoid
from surelabel.losses import asymmetric, binary

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/asymmetric.json").read_text())
PAIRS = json.loads((Path(__file__).parents[1] / "golden/losses.json").read_text())["pairs"]
CASES = pytest.mark.parametrize(
    "case", GOLDEN["cases"], ids=lambda c: "{gamma_neg}-{gamma_pos}-{clip}".format(**c)
)
GRADIENT = {"paper": "grad_attached", "code": "grad_detached"}
ETAS = torch.tensor([[0.02, 0.1, 0.3, 0.5, 0.7, 0.9]], dtype=torch.float64)


def by_hand(score, target, gamma_pos, gamma_neg, clip):
    q = 1 / (1 + math.exp(-score))
    u = max(q - clip, 0)
    positive = -((1 - q) ** gamma_pos) * math.log(q)
    negative = -(u**gamma_neg) * math.log(1 - u)
    return target * positive + (1 - target) * negative


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def settings_of(case):
    return {name: case[name] for name in ("gamma_pos", "gamma_neg", "clip")}


def best_scores(loss):
    """Where the expected loss is least, or where its gradient vanishes, for every eta."""
    low, high = torch.full_like(ETAS, -30), torch.full_like(ETAS, 30)
    for _ in range(70):
        middle = ((low + high) / 2).requires_grad_()
        loss(middle, ETAS).sum().backward()
        rising, middle = middle.grad > 0, middle.detach()
        low, high = torch.where(rising, low, middle), torch.where(rising, middle, high)
    return low


@pytest.mark.parametrize("variant", ["paper", "code"])
@pytest.mark.parametrize("gamma_pos", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("gamma_neg", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("clip", [0.0, 0.05, 0.3])
def test_equals_the_paper_with_graded_targets(gamma_pos, gamma_neg, clip, variant):
    values, focus = [-6.0, -2.9, -1.0, 0.0, 0.7, 5.0], (gamma_pos, gamma_neg, clip)
    targets = [0.0, 0.3, 1.0]
    expected = [[by_hand(x, t, *focus) for x in values] for t in targets]
    got = asymmetric(
        double([values] * 3),
        double([[t] * 6 for t in targets]),
        gamma_pos=gamma_pos,
        gamma_neg=gamma_neg,
        clip=clip,
        variant=variant,
    )
    torch.testing.assert_close(got, double(expected))


@CASES
@pytest.mark.parametrize("variant", GRADIENT)
def test_equals_the_authors_code_in_value_and_gradient(case, variant):
    scores, targets = double(GOLDEN["logits"]).requires_grad_(), double(GOLDEN["labels"])
    loss = asymmetric(scores, targets, **settings_of(case), variant=variant)
    loss.sum().backward()
    torch.testing.assert_close(loss, double(case["own_formula8_elementwise"]))
    assert loss.sum().item() == pytest.approx(case["value_sum"], rel=1e-12)
    torch.testing.assert_close(scores.grad, double(case[GRADIENT[variant]]), atol=1e-8, rtol=1e-7)


def test_equals_the_code_for_pairs_of_prompts_on_what_is_known():
    absent, present = double(PAIRS["logits"]).unbind(1)
    labels = double(PAIRS["labels"])
    loss = asymmetric(present - absent, labels.clip(0, 1), gamma_pos=1, gamma_neg=2, clip=0.05)
    assert loss[labels >= 0].sum().item() == pytest.approx(PAIRS["value_sum"], rel=1e-12)


@pytest.mark.parametrize(
    ("gamma_pos", "gamma_neg", "clip", "variant"),
    list(product((1.0, 2.0), (0.5, 4.0), (0.0, 0.05), ("paper", "code"))),
)
def test_its_link_gives_the_true_probability_where_the_loss_is_least(
    gamma_pos, gamma_neg, clip, variant
):
    settings = {"gamma_pos": gamma_pos, "gamma_neg": gamma_neg, "clip": clip, "variant": variant}
    best = best_scores(lambda x, y: asymmetric(x, y, **settings))
    torch.testing.assert_close(Focal(**settings).logits(best).sigmoid(), ETAS)
    assert (Sigmoid().logits(best).sigmoid() - ETAS).abs().max() > 0.05


def test_without_focus_or_clip_it_is_binary_cross_entropy():
    generator = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(5, 4, generator=generator)
    targets = torch.rand(5, 4, generator=generator)
    torch.testing.assert_close(
        asymmetric(scores, targets, gamma_pos=0.0, gamma_neg=0.0, clip=0.0), binary(scores, targets)
    )


@pytest.mark.parametrize("variant", ["paper", "code"])
@pytest.mark.parametrize("clip", [0.0, 1e-9, 0.05])
def test_stays_finite_for_large_scores(clip, variant):
    scores = torch.tensor([[-1e4, -100.0, 100.0, 1e4]], requires_grad=True)
    for target in (0.0, 1.0):
        loss = asymmetric(
            scores, torch.full((1, 4), target), gamma_pos=1.0, clip=clip, variant=variant
        )
        (gradient,) = torch.autograd.grad(loss.sum(), scores)
        assert loss.isfinite().all()
        assert gradient.isfinite().all()


def test_leaves_gradients_disabled():
    with torch.no_grad():
        asymmetric(torch.zeros(1, 1), torch.zeros(1, 1), variant="code")
        assert not torch.is_grad_enabled()


@pytest.mark.parametrize("wrong", [{"clip": -0.1}, {"gamma_neg": -2.0}, {"variant": "detached"}])
def test_a_setting_out_of_range_is_refused(wrong):
    with pytest.raises(ConfigError, match=str(next(iter(wrong.values())))):
        asymmetric(torch.zeros(1, 1), torch.zeros(1, 1), **wrong)


@pytest.mark.parametrize("variant", ["paper", "code"])
@pytest.mark.parametrize("gamma", [0.01, 0.5, 2.0])
def test_stays_finite_as_far_as_float32_goes(gamma, variant):
    scores = torch.tensor([[-3.4e38, -103.0, -90.0, 90.0, 3.4e38]], requires_grad=True)
    for target in (0.0, 1.0):
        loss = asymmetric(
            scores,
            torch.full((1, 5), target),
            gamma_pos=gamma,
            gamma_neg=gamma,
            clip=0.0,
            variant=variant,
        )
        (gradient,) = torch.autograd.grad(loss.sum(), scores)
        assert loss.isfinite().all()
        assert gradient.isfinite().all()
