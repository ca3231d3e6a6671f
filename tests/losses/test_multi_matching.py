"""The loss against the formula, written as plain loops, and the authors' code."""

import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from surelabel.errors import ConfigError
from surelabel.losses import info_nce, multi_matching

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/multi_matching.json").read_text())


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def by_hand(scores, targets, known, temperature=1.0):
    total = positives = 0.0
    for xs, ys, ks in zip(scores, targets, known, strict=True):
        for x, y, k in zip(xs, ys, ks, strict=True):
            total += k * math.exp(x / temperature)
            positives += k * y
    cost = 0.0
    for xs, ys, ks in zip(scores, targets, known, strict=True):
        for x, y, k in zip(xs, ys, ks, strict=True):
            if k and y:
                cost -= y / positives * (x / temperature - math.log(total))
    return cost


def test_equals_the_authors_code_in_value_and_gradient():
    scores, targets = double(GOLDEN["logits"]).requires_grad_(), double(GOLDEN["targets"])
    loss = multi_matching(scores, targets, torch.ones(4, 6, dtype=torch.bool))
    loss.backward()
    assert loss.item() == pytest.approx(GOLDEN["multi_matching"], rel=1e-14)
    torch.testing.assert_close(scores.grad, double(GOLDEN["gradient"]), atol=1e-15, rtol=1e-12)


def test_a_batch_without_positives_costs_nothing_as_in_the_authors_code():
    scores = double(GOLDEN["logits"]).requires_grad_()
    loss = multi_matching(scores, torch.zeros(4, 6), torch.ones(4, 6, dtype=torch.bool))
    loss.backward()
    assert loss.item() == GOLDEN["without_positives"]
    assert (scores.grad == 0).all()


label = st.tuples(
    st.floats(-40, 40), st.sampled_from([0.0, 0.0, 1.0, 1.0, 0.3, 0.6]), st.booleans()
)
tables = st.integers(1, 5).flatmap(
    lambda c: st.lists(st.lists(label, min_size=c, max_size=c), min_size=1, max_size=4)
)


def columns(table):
    return [list(column) for column in zip(*(zip(*row, strict=True) for row in table), strict=True)]


@hypothesis_settings(max_examples=150, deadline=None)
@given(table=tables, temperature=st.sampled_from([0.5, 1.0, 7.0]))
def test_equals_the_double_loop(table, temperature):
    scores, targets, known = columns(table)
    found = multi_matching(
        double(scores), double(targets), torch.tensor(known), temperature=temperature
    )
    expected = by_hand(scores, targets, known, temperature)
    assert found.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


@hypothesis_settings(max_examples=100, deadline=None)
@given(table=tables, temperature=st.sampled_from([0.5, 1.0, 7.0]))
def test_the_gradient_is_the_softmax_less_the_share_of_each_positive(table, temperature):
    scores, targets, known = columns(table)
    x, y, k = double(scores).requires_grad_(), double(targets), torch.tensor(known)
    multi_matching(x, y, k, temperature=temperature).backward()
    positives = (y * k).sum()
    kept = x.detach().masked_fill(~k, -torch.inf).flatten() / temperature
    q = kept.softmax(0).view_as(x) if positives else torch.zeros_like(x)
    expected = (q - y * k / max(positives, 1e-30)) / temperature
    torch.testing.assert_close(x.grad, expected.detach(), atol=1e-11, rtol=1e-9)
    assert abs(x.grad.sum()) < 1e-11


def test_hard_targets_of_a_known_batch_give_cross_entropy_of_all_decisions():
    scores, targets = double(GOLDEN["logits"]), double(GOLDEN["targets"])
    each = F.cross_entropy(
        scores.view(1, -1).expand(int(targets.sum()), -1), targets.flatten().nonzero().squeeze(1)
    )
    known = torch.ones(4, 6, dtype=torch.bool)
    torch.testing.assert_close(multi_matching(scores, targets, known), each)


def test_it_is_the_loss_image_by_image_for_a_batch_of_one():
    scores, targets = double(GOLDEN["logits"])[:1], double(GOLDEN["targets"])[:1]
    known = torch.ones(1, 6, dtype=torch.bool)
    assert torch.equal(multi_matching(scores, targets, known), info_nce(scores, targets, known))


def test_images_are_compared_with_each_other():
    scores = torch.zeros(2, 2, requires_grad=True)
    targets = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    multi_matching(scores, targets, torch.ones(2, 2, dtype=torch.bool)).backward()
    assert scores.grad.tolist() == [[-0.75, 0.25], [0.25, 0.25]]


def test_doubling_the_batch_adds_log_two():
    scores, targets = double(GOLDEN["logits"]), double(GOLDEN["targets"])
    known = torch.ones(8, 6, dtype=torch.bool)
    twice = multi_matching(scores.repeat(2, 1), targets.repeat(2, 1), known)
    once = multi_matching(scores, targets, known[:4])
    assert (twice - once).item() == pytest.approx(math.log(2))


@pytest.mark.parametrize("temperature", [1e-6, 1.0, 1e6])
def test_the_largest_numbers_stay_finite(temperature):
    most = torch.finfo(torch.float32).max
    scores = torch.tensor([[most, -most, 0.0]] * 300, requires_grad=True)
    targets = torch.tensor([[0.0, 1.0, 0.0]] * 300)
    loss = multi_matching(scores, targets, torch.ones(300, 3) > 0, temperature=temperature)
    loss.backward()
    assert loss.isfinite()
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_an_empty_batch_costs_nothing(shape):
    assert multi_matching(torch.zeros(shape), torch.zeros(shape), torch.ones(shape) > 0).item() == 0


@pytest.mark.parametrize("wrong", [0.0, math.inf])
def test_a_temperature_out_of_range_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"temperature must be in \[1e-06, 1000000\]; got"):
        multi_matching(
            torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1, 1) > 0, temperature=wrong
        )
