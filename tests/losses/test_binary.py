import json
import math
from pathlib import Path

import pytest
import torch

from surelabel.losses import binary

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/losses.json").read_text())
VARIATIONAL = json.loads((Path(__file__).parents[1] / "golden/variational.json").read_text())


def test_equals_the_formula():
    scores, targets = torch.tensor([[-2.0, 0.0, 3.0]]), torch.tensor([[1.0, 0.0, 0.25]])
    p = [1 / (1 + math.exp(-x)) for x in (-2, 0, 3)]
    mixed = -0.25 * math.log(p[2]) - 0.75 * math.log(1 - p[2])
    expected = [-math.log(p[0]), -math.log(1 - p[1]), mixed]
    torch.testing.assert_close(binary(scores, targets), torch.tensor([expected]))


def test_a_certain_mistake_costs_its_log_odds():
    assert binary(torch.tensor([[1e4]]), torch.zeros(1, 1)).item() == pytest.approx(1e4)


def test_equals_the_recorded_numbers_in_value_and_gradient():
    double = {"dtype": torch.float64}
    scores = torch.tensor(GOLDEN["logits"], **double, requires_grad=True)
    loss = binary(scores, torch.tensor(GOLDEN["labels"], **double))
    loss.mean().backward()
    torch.testing.assert_close(loss, torch.tensor(GOLDEN["bce"]["elementwise"], **double))
    assert loss.mean().item() == pytest.approx(GOLDEN["bce"]["mean"], rel=1e-14)
    torch.testing.assert_close(
        scores.grad, torch.tensor(GOLDEN["bce"]["grad_of_mean"], **double), atol=1e-16, rtol=1e-9
    )


@pytest.mark.parametrize("case", VARIATIONAL["ste"]["cases"], ids=lambda case: str(case["y"]))
def test_the_gradient_is_that_of_the_squared_error_with_a_straight_through_sigmoid(case):
    logits = torch.tensor([VARIATIONAL["ste"]["logit"]], dtype=torch.float64, requires_grad=True)
    targets = torch.full_like(logits, case["y"]).detach()
    binary(logits, targets).sum().backward()
    for name in ("grad_ste_eq15", "grad_bce_logits"):
        recorded = torch.tensor([case[name]], dtype=torch.float64)
        torch.testing.assert_close(logits.grad, recorded, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (10.0, 10.0)])
def test_the_tolerance_to_false_negatives_equals_the_recorded_one(scale, shift):
    recorded = VARIATIONAL["tolerance"]
    similarities = torch.tensor(recorded["S"], dtype=torch.float64, requires_grad=True)
    targets = torch.eye(4, dtype=torch.float64)
    binary(scale * similarities - shift, targets).sum().backward()
    of_positive = similarities.grad.diagonal().abs()
    is_false_negative = torch.tensor(recorded["false_negative_mask"])
    of_false_negatives = (similarities.grad * is_false_negative).sum(dim=1).abs()
    assert (of_positive - of_false_negatives).tolist() == pytest.approx(
        recorded[f"sigmoid_a{scale}_b{shift}"], rel=1e-10
    )
