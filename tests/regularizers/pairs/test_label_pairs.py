"""Properties of all three label-pair regularizers."""

from dataclasses import replace

import pytest
import torch

from surelabel.records import TrainingStep
from surelabel.regularizers import label_pair, label_pair_on_grid, label_pair_sampled
from surelabel.regularizers.pairs.label_pairs import LabelPairs

ways = pytest.mark.parametrize("way", [label_pair, label_pair_on_grid, label_pair_sampled])


@pytest.fixture
def step():
    generator = torch.Generator().manual_seed(0)
    scores = 2 * torch.randn(8, 6, generator=generator, dtype=torch.float64)
    targets = (torch.rand(8, 6, generator=generator) > 0.6).double()
    return TrainingStep(scores, None, targets, torch.ones(8, 6, dtype=torch.bool))


@ways
@pytest.mark.parametrize("target", [0.0, 1.0], ids=["all absent", "all present"])
def test_an_image_with_no_pair_costs_nothing_but_is_counted(way, step, target):
    targets = step.targets.clone()
    targets[0] = target
    rest = replace(step, scores=step.scores[1:], targets=step.targets[1:], known=step.known[1:])
    torch.testing.assert_close(way(replace(step, targets=targets)), way(rest) * 7 / 8)


@ways
def test_a_constant_added_to_all_labels_of_an_image_changes_nothing(way, step):
    levels = torch.linspace(-20, 20, 8, dtype=torch.float64)[:, None]
    moved = replace(step, scores=step.scores + levels)
    torch.testing.assert_close(way(moved), way(step), atol=1e-5, rtol=0)


@ways
def test_the_order_that_is_right_costs_less_than_the_wrong_one(way, step):
    right = replace(step, scores=4 * step.targets - 2)
    wrong = replace(step, scores=2 - 4 * step.targets)
    assert way(right) < 0.1 < way(wrong)


@ways
def test_unknown_labels_have_no_influence(way, step):
    known = torch.tensor([True, False, True, True, False, True]).expand(8, 6)
    fewer = TrainingStep(
        step.scores[:, known[0]],
        None,
        step.targets[:, known[0]],
        torch.ones(8, 4, dtype=torch.bool),
    )
    torch.testing.assert_close(way(replace(step, known=known)), way(fewer))


@ways
def test_graded_targets_cost_what_labels_drawn_with_them_cost_on_average(way):
    scores = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64)
    share = torch.tensor([[0.3, 0.8, 0.6]], dtype=torch.float64)
    known = torch.ones(1, 3, dtype=torch.bool)
    mean = 0.0
    for outcome in torch.cartesian_prod(*3 * [torch.tensor([0.0, 1.0], dtype=torch.float64)]):
        chance = torch.where(outcome > 0, share, 1 - share).prod()
        mean = mean + chance * label_pair(TrainingStep(scores, None, outcome[None], known))
    got = way(TrainingStep(scores, None, share, known))
    torch.testing.assert_close(got, mean, atol=2e-5, rtol=0)


def test_the_share_counts_known_labels_and_the_images_that_have_two():
    known = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]).bool()
    scores = torch.zeros(4, 4, dtype=torch.bfloat16)
    pairs = LabelPairs.from_step(TrainingStep(scores, None, torch.ones(4, 4), known))
    assert pairs.image_weights.tolist() == [2 / 12 / 2, 2 / 2 / 2, 0, 0]
    assert pairs.scores.dtype == torch.float32
    assert pairs.positive_weights.tolist() == known.float().tolist()
    assert not pairs.negative_weights.any()
