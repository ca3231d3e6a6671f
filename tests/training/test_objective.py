import pytest
import torch

from surelabel.links import LINKS
from surelabel.losses import binary
from surelabel.records import Features
from surelabel.training import Batch, Objective, objective_mean_over_known


def batch(known=True):
    targets = torch.tensor([[1.0, 0.0]])
    return Batch(Features(torch.ones(1, 3)), targets, torch.full((1, 2), known))


def seen_by_a_regularizer(link):
    steps = []
    objective = Objective(
        objective_mean_over_known(binary),
        [(lambda step: steps.append(step) or step.scores.sum(), 1.0)],
        link=link,
    )
    objective(torch.tensor([[0.5, 50.0]], requires_grad=True), batch())
    return steps[0]


def test_a_strict_link_gives_a_regularizer_log_odds_without_limits():
    step = seen_by_a_regularizer(LINKS["sigmoid"]())
    assert step.logits.tolist() == [[0.5, 50.0]]
    assert step.logits.requires_grad


def test_other_links_give_a_regularizer_scores_alone():
    assert seen_by_a_regularizer(LINKS["focal"]()).logits is None
    assert seen_by_a_regularizer(None).logits is None


def test_a_regularizer_is_told_of_no_vectors_where_there_are_none():
    assert seen_by_a_regularizer(None).features.shape == (1, 3)
    steps = []
    objective = Objective(
        objective_mean_over_known(binary),
        [(lambda step: steps.append(step) or step.scores.sum(), 1.0)],
    )
    pixels = Features(torch.ones(1, 0), pixels=torch.ones(1, 3, 8, 8))
    objective(torch.zeros(1, 2), Batch(pixels, batch().targets, batch().known))
    assert steps[0].features is None


def test_nothing_known_costs_nothing():
    loss, penalty = Objective(objective_mean_over_known(binary))(
        torch.zeros(1, 2), batch(known=False)
    )
    assert loss.item() == 0
    assert penalty is None


def test_the_mean_is_over_what_is_known():
    mean = objective_mean_over_known(binary)
    known = torch.tensor([[True, False]])
    scores, targets = torch.tensor([[2.0, 9.0]]), torch.tensor([[1.0, 0.0]])
    assert mean(scores, targets, known).item() == pytest.approx(0.126928, abs=1e-6)


def test_loss_and_penalty_of_several_heads_are_means():
    objective = Objective(
        objective_mean_over_known(binary), [(lambda step: step.scores.sum(), 3.0)]
    )
    heads = torch.tensor([[[0.5, 1.0]], [[2.0, 4.0]], [[-1.0, 0.0]]])
    loss, penalty = objective.mean_over_heads(heads, batch())
    each = [objective(scores, batch()) for scores in heads]
    assert loss.item() == pytest.approx(sum(one.item() for one, _ in each) / 3)
    assert penalty.item() == pytest.approx(3 * (1.5 + 6 - 1) / 3)
    assert Objective(objective_mean_over_known(binary)).mean_over_heads(heads, batch())[1] is None


class MethodWithLosses:
    """Method whose additional loss is the number of known targets."""

    def training_losses(self, targets, known):
        return known.sum() * 0.25


def test_losses_of_the_method_are_part_of_the_penalty():
    objective = Objective(objective_mean_over_known(binary), method=MethodWithLosses())
    loss, penalty = objective(torch.zeros(1, 2), batch())
    assert penalty.item() == 0.5
    assert loss.item() == pytest.approx(0.6931, abs=1e-4)
    heads = objective.mean_over_heads(torch.zeros(3, 1, 2), batch())
    assert [value.item() for value in heads] == pytest.approx([loss.item(), 0.5])
    both = Objective(
        objective_mean_over_known(binary),
        [(lambda step: step.targets.sum(), 3.0)],
        method=MethodWithLosses(),
    )
    assert both(torch.zeros(1, 2), batch())[1].item() == 3.5


def test_the_captions_of_a_batch_are_the_texts_of_a_regularizer():
    steps = []
    objective = Objective(
        objective_mean_over_known(binary),
        [(lambda step: steps.append(step) or step.scores.sum(), 1.0)],
        texts=torch.zeros(2, 3),
    )
    pairs = Batch(
        Features(torch.ones(1, 3)), batch().targets, batch().known, texts=Features(torch.ones(2, 3))
    )
    objective(torch.zeros(1, 2), pairs)
    objective(torch.zeros(1, 2), batch())
    assert [step.texts.sum().item() for step in steps] == [6.0, 0.0]
