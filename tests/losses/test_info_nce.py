"""The loss against the formula, written as plain loops, and recorded numbers."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from surelabel.errors import ConfigError
from surelabel.losses import info_nce

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/multi_matching.json").read_text())


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def of_an_image(scores, targets, known, temperature):
    """Its cost and its gradient."""
    labels = [j for j, k in enumerate(known) if k]
    positives = sum(targets[j] for j in labels)
    if not positives:
        return 0.0, [0.0] * len(scores)
    top = max(scores[j] for j in labels)
    powers = {j: math.exp((scores[j] - top) / temperature) for j in labels}
    total, cost, gradient = sum(powers.values()), 0.0, [0.0] * len(scores)
    for j in labels:
        log_q = (scores[j] - top) / temperature - math.log(total)
        cost -= targets[j] * log_q / positives
        gradient[j] = (powers[j] / total - targets[j] / positives) / temperature
    return cost, gradient


def by_hand(scores, targets, known, temperature=1.0):
    images = [of_an_image(*row, temperature) for row in zip(scores, targets, known, strict=True)]
    counts = [
        max((y for y, k in zip(ys, ks, strict=True) if k), default=0.0)
        for ys, ks in zip(targets, known, strict=True)
    ]
    total = sum(counts) or 1.0
    cost = sum(n * cost for n, (cost, _) in zip(counts, images, strict=True)) / total
    gradient = [[n * g / total for g in row] for n, (_, row) in zip(counts, images, strict=True)]
    return cost, gradient


def test_equals_the_recorded_value():
    scores, targets = double(GOLDEN["logits"]), double(GOLDEN["targets"])
    loss = info_nce(scores, targets, torch.ones(4, 6, dtype=torch.bool))
    assert loss.item() == pytest.approx(GOLDEN["info_nce"], rel=1e-14)


label = st.tuples(
    st.floats(-40, 40), st.sampled_from([0.0, 0.0, 1.0, 1.0, 0.3, 0.6]), st.booleans()
)


@hypothesis_settings(max_examples=150, deadline=None)
@given(
    labels=st.integers(1, 5).flatmap(
        lambda c: st.lists(st.lists(label, min_size=c, max_size=c), min_size=1, max_size=4)
    ),
    temperature=st.sampled_from([0.5, 1.0, 7.0]),
)
def test_value_and_gradient_equal_the_loops(labels, temperature):
    rows = [tuple(zip(*row, strict=True)) for row in labels]
    scores, targets, known = (list(column) for column in zip(*rows, strict=True))
    x = double(scores).requires_grad_()
    loss = info_nce(x, double(targets), torch.tensor(known), temperature=temperature)
    loss.backward()
    cost, gradient = by_hand(scores, targets, known, temperature)
    assert loss.item() == pytest.approx(cost, rel=1e-11, abs=1e-11)
    torch.testing.assert_close(x.grad, double(gradient), atol=1e-11, rtol=1e-9)


def test_a_constant_added_to_an_image_changes_nothing():
    scores, targets = double(GOLDEN["logits"]), double(GOLDEN["targets"])
    known = torch.ones(4, 6, dtype=torch.bool)
    moved = scores + 100 * torch.arange(4)[:, None]
    torch.testing.assert_close(info_nce(moved, targets, known), info_nce(scores, targets, known))


def test_an_image_without_positives_changes_nothing():
    scores, targets = double(GOLDEN["logits"]), double(GOLDEN["targets"])
    known = torch.ones(4, 6, dtype=torch.bool)
    assert targets[3].sum() == 0
    torch.testing.assert_close(
        info_nce(scores, targets, known), info_nce(scores[:3], targets[:3], known[:3])
    )


def test_the_scores_of_positives_become_equal():
    scores = torch.tensor([[2.0, 0.0]], requires_grad=True)
    info_nce(scores, torch.ones(1, 2), torch.ones(1, 2, dtype=torch.bool)).backward()
    assert scores.grad[0, 0] > 0.1
    assert scores.grad[0, 1] < -0.1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("temperature", [1e-6, 1.0, 1e6])
def test_the_largest_numbers_stay_finite(dtype, temperature):
    most = torch.finfo(dtype).max
    scores = torch.tensor([[most, -most, 0.0]] * 2, dtype=dtype, requires_grad=True)
    targets = torch.tensor([[0, 1, 0], [1, 1, 0]], dtype=dtype)
    loss = info_nce(scores, targets, torch.ones(2, 3) > 0, temperature=temperature)
    loss.backward()
    assert loss.isfinite()
    assert scores.grad.isfinite().all()


def test_half_precision_is_summed_in_float32():
    scores = torch.randn(3, 400, generator=torch.Generator().manual_seed(0)).half()
    targets = (torch.rand(3, 400, generator=torch.Generator().manual_seed(1)) > 0.9).half()
    known = torch.ones(3, 400, dtype=torch.bool)
    exact = info_nce(scores.double(), targets.double(), known)
    assert info_nce(scores, targets, known).item() == pytest.approx(exact.item(), rel=1e-6)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_an_empty_batch_costs_nothing(shape):
    assert info_nce(torch.zeros(shape), torch.zeros(shape), torch.ones(shape) > 0).item() == 0


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan, 1e-9])
def test_a_temperature_out_of_range_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"temperature must be in \[1e-06, 1000000\]; got"):
        info_nce(torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1, 1) > 0, temperature=wrong)


@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_the_tolerance_to_false_negatives_equals_the_recorded_one(temperature):
    path = Path(__file__).parents[1] / "golden/variational.json"
    recorded = json.loads(path.read_text())["tolerance"]
    similarities = double(recorded["S"]).requires_grad_()
    targets, known = torch.eye(4, dtype=torch.float64), torch.ones(4, 4, dtype=torch.bool)
    (4 * info_nce(similarities, targets, known, temperature=temperature)).backward()
    of_positive = similarities.grad.diagonal().abs()
    of_false_negatives = (similarities.grad * double(recorded["false_negative_mask"])).sum(1).abs()
    assert (of_positive - of_false_negatives).tolist() == pytest.approx(
        recorded[f"contrastive_tau_{temperature}"], rel=1e-10
    )
