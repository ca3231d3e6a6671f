"""The loss against the formula and the recorded numbers; what its link does is in tests/links."""

import json
import math
from pathlib import Path

import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.links import SPA
from surelabel.losses import binary, spa
from surelabel.losses.properties.loss_properties import minimizers_for_loss_properties

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/spa.json").read_text())
CASES = pytest.mark.parametrize("case", GOLDEN["cases"], ids=["default", "other"])


def by_hand(score, target, zeta_pos, k_pos, b_pos, zeta_neg, k_neg, b_neg):
    positive = math.log(1 + math.exp(-k_pos * (score - b_pos))) / zeta_pos
    negative = math.log(1 + math.exp(k_neg * (score - b_neg))) / zeta_neg
    return target * positive + (1 - target) * negative


def double(values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=["default", "other"])
def test_equals_the_formula_with_graded_targets(case):
    scores, targets = [-6.0, -1.0, 0.0, 0.7, 5.0], [0.0, 0.3, 0.9, 1.0]
    expected = [[by_hand(x, y, **case["params"]) for x in scores] for y in targets]
    found = spa(double([scores] * 4), double([[y] * 5 for y in targets]), **case["params"])
    torch.testing.assert_close(found, double(expected))


@CASES
def test_equals_the_recorded_numbers_in_value_and_gradient(case):
    scores, targets = double(GOLDEN["logits"]).requires_grad_(), double(GOLDEN["labels"])
    loss = spa(scores, targets, **case["params"])
    loss.mean().backward()
    torch.testing.assert_close(loss, double(case["elementwise"]), rtol=1e-13, atol=0)
    assert loss.mean().item() == pytest.approx(case["mean"], rel=1e-14)
    torch.testing.assert_close(scores.grad, double(case["grad_of_mean"]), rtol=1e-12, atol=1e-18)
    for target, part in ((1.0, "loss_pos"), (0.0, "loss_neg")):
        alone = spa(scores, torch.full_like(scores, target), **case["params"])
        torch.testing.assert_close(alone, double(case[part]), rtol=1e-13, atol=0)


def test_equals_the_recorded_table():
    for row in GOLDEN["table"]:
        scores = double([[row["v"], row["v"]]])
        positive, negative = spa(scores, double([[1.0, 0.0]]))[0].tolist()
        assert positive == pytest.approx(row["loss_pos"], rel=1e-13, abs=1e-300)
        assert negative == pytest.approx(row["loss_neg"], rel=1e-13, abs=1e-300)


@CASES
def test_the_gradient_is_a_positive_weight_times_the_residual(case):
    scores = double([[-7.0, -1.0, 0.0, 0.4, 1.0, 2.0, 6.0]]).requires_grad_()
    residual = SPA(**case["params"]).logits(scores).sigmoid().detach()
    weights = []
    for target in (0.0, 0.2, 1.0):
        loss = spa(scores, torch.full_like(scores, target), **case["params"])
        (gradient,) = torch.autograd.grad(loss.sum(), scores)
        weights.append(gradient / (residual - target))
    assert (weights[0] > 0).all()
    torch.testing.assert_close(weights[1], weights[0])
    torch.testing.assert_close(weights[2], weights[0])


def test_the_weights_are_the_recorded_ones():
    for row in GOLDEN["table"]:
        scores = double([[row["v"]]]).requires_grad_()
        gradients = [
            torch.autograd.grad(spa(scores, double([[y]])).sum(), scores)[0].item() for y in (0, 1)
        ]
        assert gradients[0] - gradients[1] == pytest.approx(row["w"], rel=1e-12)


@CASES
def test_graded_targets_are_met_in_the_mean(case):
    answers = double([[0.0, 0.3, 0.3, 0.6, 0.9, 1.0]])  # agreement of ten people, as in VQA
    mean = answers.mean().reshape(1, 1)
    best = minimizers_for_loss_properties(
        lambda x, _: spa(x.expand(1, 6), answers, **case["params"]), mean
    )
    torch.testing.assert_close(SPA(**case["params"]).logits(best).sigmoid(), mean)


def test_with_no_scale_slope_or_shift_it_is_binary_cross_entropy():
    generator = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(5, 4, generator=generator)
    targets = torch.rand(5, 4, generator=generator)
    torch.testing.assert_close(
        spa(scores, targets, zeta_neg=1.0, k_neg=1.0, b_neg=0.0), binary(scores, targets)
    )


@pytest.mark.parametrize("target", [0.0, 1.0, 0.5])
def test_stays_finite_as_far_as_float32_goes(target):
    scores = torch.tensor([[-3.4e38, -1e4, 1e4, 3.4e38]], requires_grad=True)
    loss = spa(scores, torch.full((1, 4), target))
    loss.sum().backward()
    assert loss.isfinite().all()
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("wrong", [{"zeta_pos": 0.0}, {"k_neg": -1.0}, {"b_pos": math.inf}])
def test_a_setting_out_of_range_is_refused(wrong):
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be in"):
        spa(torch.zeros(1, 1), torch.zeros(1, 1), **wrong)
