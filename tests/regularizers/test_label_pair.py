"""The exact regularizer against the paper written as loops, and against recorded numbers."""

import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from surelabel.records import TrainingStep
from surelabel.regularizers import label_pair
from surelabel.regularizers.pairs import pair_loss_sum

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/label_pair.json").read_text())
POPULATIONS = [
    pytest.param(case, float(weight), id=f"{case['case']}, weight {weight}")
    for case in GOLDEN["population"]
    for weight in case["argmin_p"]
]


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def step_of(values, targets):
    return TrainingStep(values, values, targets, torch.ones_like(targets, dtype=torch.bool))


def by_hand(logits, targets):
    """Eq. 19 and 20 to the letter: which of two differing labels is present, from p and 1 - p."""
    total = 0.0
    for t, s in ((t, s) for t in range(len(logits)) for s in range(len(logits))):
        if targets[t] == 1 and targets[s] == 0:
            p_t, p_s = (1 / (1 + math.exp(-logits[i])) for i in (t, s))
            beta = p_t * (1 - p_s) / (p_t * (1 - p_s) + p_s * (1 - p_t))
            total -= math.log(beta)
    return total * 2 / (len(logits) * (len(logits) - 1))


def whole_square(z, targets):
    """All T · T pairs at once."""
    gaps = z[:, None, :] - z[:, :, None]
    charges = -F.logsigmoid(-gaps) * targets[:, :, None] * (1 - targets)[:, None, :]
    return 2 / (z.shape[1] * (z.shape[1] - 1)) * charges.sum((1, 2)).mean()


def spa_log_odds(v):
    """The inverse link of SPA with its default parameters."""
    return math.log(0.6) + F.softplus(v) - F.softplus(-3 * (v - 1))


def spa(v, targets):
    """The SPA loss with its default parameters."""
    return targets * F.softplus(-v) + (1 - targets) * F.softplus(3 * (v - 1)) / 5


def value_and_gradient(function, values, targets):
    values = values.clone().requires_grad_()
    value = function(values, targets)
    return value.detach(), torch.autograd.grad(value, values)[0]


def of_scores(values, targets):
    return label_pair(step_of(values, targets))


def of_spa(values, targets):
    z = spa_log_odds(values)
    return label_pair(TrainingStep(values, z, targets, targets >= 0))


@given(st.lists(st.tuples(st.floats(-12, 12), st.sampled_from([0.0, 1.0])), min_size=2, max_size=7))
def test_equals_the_paper_to_the_letter(labels):
    logits, targets = zip(*labels, strict=True)
    got = label_pair(step_of(double([logits]), double([targets])))
    assert got.item() == pytest.approx(by_hand(logits, targets), abs=1e-8)


@pytest.mark.parametrize("block", [1, 100, 2**16])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_equals_all_pairs_at_once_in_value_and_gradient(block, dtype, monkeypatch):
    monkeypatch.setattr(pair_loss_sum, "PAIRS_PER_BLOCK", block)
    generator = torch.Generator().manual_seed(0)
    z = (3 * torch.randn(24, 30, generator=generator, dtype=torch.float64)).to(dtype)
    density = torch.linspace(0, 1, 24)[:, None]
    targets = (torch.rand(24, 30, generator=generator) < density).to(dtype)
    expected = value_and_gradient(whole_square, z, targets)
    torch.testing.assert_close(value_and_gradient(of_scores, z, targets), expected)


@pytest.mark.parametrize(("name", "function"), [("scores", of_scores), ("spa", of_spa)])
def test_equals_the_recorded_numbers(name, function):
    v, targets, expected = double(GOLDEN["logits"]), double(GOLDEN["labels"]), GOLDEN[name]
    value, gradient = value_and_gradient(function, v, targets)
    assert value.item() == pytest.approx(expected["value"], abs=1e-8)
    torch.testing.assert_close(gradient, double(expected["grad"]), atol=1e-8, rtol=0)
    for row, charge in enumerate(expected["per_sample"]):
        alone = function(v[row : row + 1], targets[row : row + 1])
        assert alone.item() == pytest.approx(charge, abs=1e-8)


@pytest.mark.parametrize("weight", GOLDEN["spa_plus"])
def test_beside_spa_it_gives_the_recorded_numbers(weight):
    def together(v, targets):
        return spa(v, targets).mean() + float(weight) * of_spa(v, targets)

    found = value_and_gradient(together, double(GOLDEN["logits"]), double(GOLDEN["labels"]))
    expected = GOLDEN["spa_plus"][weight]
    assert found[0].item() == pytest.approx(expected["value"], abs=1e-7)
    torch.testing.assert_close(found[1], double(expected["grad"]), atol=1e-7, rtol=0)


@pytest.mark.parametrize(("population", "weight"), POPULATIONS)
def test_moves_the_best_probabilities_only_where_labels_depend_on_each_other(population, weight):
    (first, second), both = population["eta"], population["P11"]
    counts = [both, first - both, second - both, 1 - first - second + both]
    outcomes = double([[1, 1], [1, 0], [0, 1], [0, 0]])
    targets = outcomes.repeat_interleave(torch.tensor([round(20 * c) for c in counts]), dim=0)
    v = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS([v], max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-15)

    def closure():
        solver.zero_grad()
        rows = v.expand(20, 2)
        value = spa(rows, targets).mean() + weight * of_spa(rows, targets)
        value.backward()
        return value

    solver.step(closure)
    best = spa_log_odds(v.detach()).sigmoid()
    expected = double(population["argmin_p"][str(weight)])
    torch.testing.assert_close(best, expected, atol=1e-6, rtol=0)
    independent = both == pytest.approx(first * second)
    moved = (best - double(population["eta"])).abs().max().item()
    assert (moved > 0.01) is bool(weight and not independent)


def test_saves_only_the_gradient_for_the_backward_pass():
    z = torch.randn(4, 50, requires_grad=True)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, id):
        label_pair(step_of(z, (torch.rand(4, 50) > 0.5).float()))
    assert max(kept) <= z.numel()


def test_a_long_sum_of_float32_charges_keeps_its_digits():
    z, targets = torch.full((64, 400), 1 / 3), torch.zeros(64, 400)
    targets[:, :200] = 1
    got = label_pair(step_of(z, targets)).item()
    assert got == pytest.approx(math.log(2) * 200 * 200 * 2 / (400 * 399), rel=1e-7)
