"""The loss against the paper, written as plain loops, and the author's code."""

import json
import math
from pathlib import Path

import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.losses import two_way

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/losses.json").read_text())


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def of_a_line(scores, targets, temperature_pos, temperature_neg):
    """The cost of one image or one label, and how much it counts."""
    worst = sum(y * math.exp(-x / temperature_pos) for x, y in zip(scores, targets, strict=True))
    best = sum(
        (1 - y) * math.exp(x / temperature_neg) for x, y in zip(scores, targets, strict=True)
    )
    if not worst or not best:
        return 0.0, max(targets, default=0.0)
    gap = temperature_neg * math.log(best) + temperature_pos * math.log(worst)
    return math.log(1 + math.exp(gap)), max(targets)


def by_hand(scores, targets, known, temperature_pos=4.0, temperature_neg=1.0):
    total = 0.0
    for turn in (lambda rows: rows, lambda rows: list(zip(*rows, strict=True))):
        lines = []
        for xs, ys, ks in zip(turn(scores), turn(targets), turn(known), strict=True):
            kept = [(x, y) for x, y, k in zip(xs, ys, ks, strict=True) if k]
            lines.append(
                of_a_line(
                    [x for x, _ in kept], [y for _, y in kept], temperature_pos, temperature_neg
                )
            )
        counts = sum(count for _, count in lines)
        total += sum(count * cost for cost, count in lines) / counts if counts else 0.0
    return total


def drawn(seed, graded):
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(5, 7, generator=generator, dtype=torch.float64)
    targets = torch.rand(5, 7, generator=generator, dtype=torch.float64)
    targets = targets * (targets > 0.4) if graded else (targets > 0.6).double()
    return scores, targets, torch.rand(5, 7, generator=generator) > 0.3


@pytest.mark.parametrize("case", GOLDEN["two_way"], ids=lambda c: "{value:.2f}".format(**c))
def test_equals_the_authors_code_in_value_and_gradient(case):
    scores, targets = double(GOLDEN["logits"]).requires_grad_(), double(GOLDEN["labels"])
    settings = {name: case[name] for name in ("temperature_pos", "temperature_neg")}
    loss = two_way(scores, targets, torch.ones(6, 7, dtype=torch.bool), **settings)
    loss.backward()
    assert loss.item() == pytest.approx(case["exact_mask"], rel=1e-14)
    assert loss.item() == pytest.approx(case["value"], abs=3e-10)
    torch.testing.assert_close(scores.grad, double(case["grad"]), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("graded", [False, True], ids=["hard", "graded"])
@pytest.mark.parametrize("seed", range(5))
def test_equals_the_formula_with_unknown_labels(seed, graded):
    scores, targets, known = drawn(seed, graded)
    for settings in ({}, {"temperature_pos": 0.5, "temperature_neg": 3.0}):
        expected = by_hand(scores.tolist(), targets.tolist(), known.tolist(), **settings)
        assert two_way(scores, targets, known, **settings).item() == pytest.approx(expected)


@pytest.mark.parametrize("targets", [[[0.0, 0.0]] * 2, [[1.0, 1.0]] * 2], ids=["absent", "present"])
def test_a_batch_without_both_has_no_loss_and_no_gradient(targets):
    scores = torch.tensor([[1.0, -200.0], [300.0, 2.0]], requires_grad=True)
    loss = two_way(scores, torch.tensor(targets), torch.ones(2, 2, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0
    assert scores.grad.abs().max() == 0


def test_an_image_without_negatives_counts_in_the_mean_and_one_without_positives_does_not():
    scores = torch.zeros(1, 2)
    known = torch.ones(3, 2, dtype=torch.bool)
    mixed, full, empty = [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]
    alone = two_way(scores, torch.tensor([mixed]), known[:1]).item()
    assert alone == pytest.approx(math.log(2))  # by image; by label nothing is mixed
    beside = two_way(torch.zeros(2, 2), torch.tensor([mixed, full]), known[:2]).item()
    second_label = math.log(2)  # present in one of two
    assert beside == pytest.approx(math.log(2) / 2 + second_label / 2)
    first_label = math.log(2)  # absent once
    beside = two_way(torch.zeros(2, 2), torch.tensor([mixed, empty]), known[:2]).item()
    assert beside == pytest.approx(math.log(2) + first_label)


def test_a_constant_added_to_all_scores_changes_nothing():
    scores, targets, known = drawn(0, graded=False)
    torch.testing.assert_close(
        two_way(scores + 7.3, targets, known), two_way(scores, targets, known)
    )


def test_stays_finite_where_exponentials_overflow():
    scores = torch.tensor([[-1e4, 1e4], [1e4, -1e4]], requires_grad=True)
    loss = two_way(scores, torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[True] * 2] * 2))
    loss.backward()
    assert loss.isfinite()
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("wrong", [{"temperature_pos": 0.0}, {"temperature_neg": math.inf}])
def test_a_setting_out_of_range_is_refused(wrong):
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be a finite number > 0"):
        two_way(torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool), **wrong)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_an_empty_batch_costs_nothing(shape):
    assert two_way(torch.zeros(shape), torch.zeros(shape), torch.ones(shape) > 0).item() == 0
