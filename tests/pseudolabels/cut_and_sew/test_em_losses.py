"""One training step in both directions, against the authors' code."""

import json
from pathlib import Path

import pytest
import torch

from surelabel.errors import InputError
from surelabel.pseudolabels import LabelEstimator, em_expectation_loss, em_maximization_loss
from surelabel.views import blend_labels_of_sewing

STEP = json.loads((Path(__file__).parents[2] / "golden/tailorclip_pseudolabels.json").read_text())[
    "labels"
]


def test_a_step_equals_the_authors_code_in_labels_losses_and_both_gradients():
    estimator = LabelEstimator(torch.tensor(STEP["Z"]))
    canvases = [[m, *o] for m, o in zip(STEP["main_ids"], STEP["overlay_ids"], strict=True)]
    borrowed = estimator.gather(canvases)
    student = torch.tensor(STEP["pred_weak_then_strong"], requires_grad=True)
    weak, strong = student.split(3)
    z = blend_labels_of_sewing(borrowed.log_odds, borrowed.canvases)
    m_loss = (
        em_maximization_loss(weak, z).mean()
        + STEP["lambda_hard"] * em_maximization_loss(strong, z).mean()
    )
    e_loss = em_expectation_loss(z, weak).mean()
    (m_loss + STEP["lambda_rev"] * e_loss).backward()
    close = {"rtol": 0, "atol": 1e-5}
    torch.testing.assert_close(z, torch.tensor(STEP["fused_label_logits"]), **close)
    assert m_loss.item() == pytest.approx(STEP["loss_M"], abs=1e-5)
    assert e_loss.item() == pytest.approx(STEP["loss_E_unweighted"], abs=1e-5)
    torch.testing.assert_close(student.grad, torch.tensor(STEP["grad_pred"]), **close)
    routed = torch.zeros(6, 5).index_copy(0, borrowed.rows, borrowed.log_odds.grad)
    torch.testing.assert_close(routed, torch.tensor(STEP["grad_Z"]), **close)


def test_each_loss_moves_one_side_and_is_least_where_both_agree():
    a = torch.tensor([[0.5, -2.0]], requires_grad=True)
    b = torch.tensor([[1.5, -2.0]], requires_grad=True)
    for loss in (em_expectation_loss, em_maximization_loss):
        moved, fixed = torch.autograd.grad(loss(a, b).sum(), (a, b), allow_unused=True)
        assert fixed is None
        assert moved[0, 0] < 0
        assert moved[0, 1].item() == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("loss", [em_expectation_loss, em_maximization_loss])
def test_shapes_that_differ_are_refused(loss):
    with pytest.raises(InputError, match=r"blended.*student|student.*blended"):
        loss(torch.zeros(2, 3), torch.zeros(2, 4))
