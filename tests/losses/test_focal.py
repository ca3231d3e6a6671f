"""The loss against the paper, written plainly, and the authors' code."""

import json
import math
from itertools import product
from pathlib import Path

import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.links import Sigmoid
from surelabel.losses import binary, focal, focal_loss_link
from surelabel.losses.properties.loss_properties import minimizers_for_loss_properties

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/losses.json").read_text())


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def by_hand(score, target, gamma_pos, gamma_neg):
    q = 1 / (1 + math.exp(-score))
    positive = -((1 - q) ** gamma_pos) * math.log(q)
    negative = -(q**gamma_neg) * math.log(1 - q)
    return target * positive + (1 - target) * negative


@pytest.mark.parametrize(("gamma_pos", "gamma_neg"), [(2, 2), (0, 4), (1, 4), (0.5, 3)])
def test_equals_the_formula_with_graded_targets(gamma_pos, gamma_neg):
    scores, targets = [-6.0, -1.0, 0.0, 0.7, 5.0], [0.0, 0.3, 0.9, 1.0]
    expected = [[by_hand(x, y, gamma_pos, gamma_neg) for x in scores] for y in targets]
    found = focal(
        double([scores] * 4),
        double([[y] * 5 for y in targets]),
        gamma_pos=gamma_pos,
        gamma_neg=gamma_neg,
    )
    torch.testing.assert_close(found, double(expected))


@pytest.mark.parametrize(("recorded", "alpha"), [("unweighted", None), ("alpha_0.25", 0.25)])
def test_equals_the_authors_code_in_value_and_gradient(recorded, alpha):
    scores, targets = double(GOLDEN["logits"]).requires_grad_(), double(GOLDEN["labels"])
    weights = 1.0 if alpha is None else alpha * targets + (1 - alpha) * (1 - targets)
    mean = (weights * focal(scores, targets)).mean()
    mean.backward()
    assert mean.item() == pytest.approx(GOLDEN["focal"][recorded]["value"], rel=1e-13)
    torch.testing.assert_close(scores.grad, double(GOLDEN["focal"][recorded]["grad"]))


@pytest.mark.parametrize(
    ("gamma_pos", "gamma_neg", "variant"), list(product((0.0, 2.0), (0.5, 4.0), ("paper", "code")))
)
def test_its_link_gives_the_true_probability_where_the_loss_is_least(gamma_pos, gamma_neg, variant):
    settings = {"gamma_pos": gamma_pos, "gamma_neg": gamma_neg, "variant": variant}
    shares = double([[0.02, 0.1, 0.3, 0.7, 0.9]])
    best = minimizers_for_loss_properties(lambda x, y: focal(x, y, **settings), shares)
    torch.testing.assert_close(focal_loss_link(**settings).logits(best).sigmoid(), shares)
    assert (Sigmoid().logits(best).sigmoid() - shares).abs().max() > 0.04


def test_constant_weights_change_the_gradient_and_not_the_value():
    scores, targets = double([[-1.0, 2.0]]).requires_grad_(), double([[1.0, 0.0]])
    values = [focal(scores, targets, variant=v) for v in ("paper", "code")]
    gradients = [torch.autograd.grad(v.sum(), scores)[0] for v in values]
    assert torch.equal(*values)
    assert (gradients[0] - gradients[1]).abs().min() > 0.1


def test_without_focus_it_is_binary_cross_entropy():
    scores, targets = double(GOLDEN["logits"]), double(GOLDEN["labels"])
    torch.testing.assert_close(
        focal(scores, targets, gamma_pos=0.0, gamma_neg=0.0), binary(scores, targets)
    )


def test_a_setting_out_of_range_is_refused():
    with pytest.raises(ConfigError, match=r"gamma_pos must be .* >= 0.*-1"):
        focal(torch.zeros(1, 1), torch.zeros(1, 1), gamma_pos=-1.0)
    with pytest.raises(ConfigError, match=r'"paper".*"code".*both'):
        focal_loss_link(variant="both")
