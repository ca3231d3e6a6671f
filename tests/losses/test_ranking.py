"""The loss against all pairs in a double loop, and the authors' code."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from surelabel.errors import ConfigError
from surelabel.losses import ranking

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/losses.json").read_text())


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def by_hand(scores, targets, known, margin=1.0, scale=1.0):
    """The cost of one image."""
    labels = [t for t, k in enumerate(known) if k]
    return sum(
        targets[t] * (1 - targets[s]) * max(0.0, margin - scale * (scores[t] - scores[s]))
        for t in labels
        for s in labels
        if t != s
    )


@pytest.mark.parametrize("case", GOLDEN["ranking"], ids=lambda c: "scale {scale}".format(**c))
def test_equals_the_authors_code_in_value_and_gradient(case):
    scores, targets = double(GOLDEN["logits"]).requires_grad_(), double(GOLDEN["labels"])
    settings = {name: case[name] for name in ("margin", "scale")}
    loss = ranking(scores, targets, torch.ones(6, 7, dtype=torch.bool), **settings)
    loss.backward()
    assert loss.item() == pytest.approx(case["value"], rel=1e-14)
    torch.testing.assert_close(scores.grad, double(case["grad"]))


label = st.tuples(
    st.integers(-8, 8).map(lambda quarter: quarter / 4),  # many ties, many pairs on the edge
    st.sampled_from([0.0, 0.0, 1.0, 1.0, 0.3, 0.6]),
    st.booleans(),
)


@hypothesis_settings(max_examples=150, deadline=None)
@given(labels=st.lists(label, min_size=1, max_size=9), margin=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_equals_the_double_loop(labels, margin):
    scores, targets, known = zip(*labels, strict=True)
    found = ranking(
        double([scores]), double([targets]), torch.tensor([known]), margin=margin, scale=1.5
    )
    expected = by_hand(scores, targets, known, margin, 1.5)
    assert found.item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_gradient_of_many_labels_is_that_of_all_pairs():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 400, generator=generator, dtype=torch.float64).requires_grad_()
    targets = torch.rand(3, 400, generator=generator, dtype=torch.float64).round(decimals=1)
    known = torch.rand(3, 400, generator=generator) > 0.2
    weights = (known * targets)[:, :, None] * (known * (1 - targets))[:, None, :]
    weights = weights * (1 - torch.eye(400, dtype=torch.float64))
    pairs = weights * (1 - scores[:, :, None] + scores[:, None, :]).relu()
    expected = pairs.sum() / 3
    found = ranking(scores, targets, known)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found, scores), torch.autograd.grad(expected, scores)
    )


def test_graded_targets_cost_the_mean_over_independent_labels():
    scores, chances = [0.3, -0.4, 1.1], [0.2, 0.7, 0.5]
    expected = 0.0
    for present in range(8):
        targets = [float(present >> t & 1) for t in range(3)]
        chance = math.prod(p if y else 1 - p for p, y in zip(chances, targets, strict=True))
        expected += chance * by_hand(scores, targets, [True] * 3)
    found = ranking(double([scores]), double([chances]), torch.ones(1, 3, dtype=torch.bool))
    assert found.item() == pytest.approx(expected)


def test_a_constant_added_to_an_image_changes_nothing():
    scores, targets = double(GOLDEN["logits"]), double(GOLDEN["labels"])
    known = torch.ones(6, 7, dtype=torch.bool)
    moved = scores + torch.arange(6)[:, None]
    torch.testing.assert_close(ranking(moved, targets, known), ranking(scores, targets, known))


def test_a_pair_exactly_a_margin_apart_has_no_loss_and_no_gradient():
    scores = torch.tensor([[1.5, 0.5]], requires_grad=True)
    loss = ranking(scores, torch.tensor([[1.0, 0.0]]), torch.ones(1, 2, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0
    assert (scores.grad == 0).all()


def test_an_image_of_positives_only_has_no_loss_and_no_gradient():
    scores = torch.tensor([[-100.0, 0.0, 100.0]] * 2, requires_grad=True)
    loss = ranking(scores, torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0
    assert (scores.grad == 0).all()


def test_float32_is_summed_in_float64():
    generator = torch.Generator().manual_seed(0)
    scores = 30 + torch.randn(1, 5000, generator=generator)
    targets = (torch.rand(1, 5000, generator=generator) > 0.99).float()
    known = torch.ones(1, 5000, dtype=torch.bool)
    exact = ranking(scores.double(), targets, known)
    assert ranking(scores, targets, known).item() == pytest.approx(exact.item(), rel=1e-7)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"margin": -1.0}, "margin must be .*-1"), ({"scale": 0.0}, "scale must be .*0.0")],
)
def test_a_setting_out_of_range_is_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        ranking(torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool), **wrong)
