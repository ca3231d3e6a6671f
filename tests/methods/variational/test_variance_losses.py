import math

import pytest
import torch

from surelabel.methods.variational.variance_losses import (
    hardest_negative_weights,
    positive_pair_weights,
    residual_error_loss,
    variance_loss,
)

GRID = [(h, e2) for h in (-9.0, -1.0, 0.0, 0.7, 4.0) for e2 in (0.0, 0.01, 0.3, 0.97, 1.0)]


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(("h", "e2"), GRID)
def test_values_and_gradients_are_those_of_the_formulas(h, e2):
    for bounded in (True, False):
        log_variance, error = double(h).requires_grad_(), double(e2).requires_grad_()
        loss = variance_loss(log_variance, error, bounded_variance=bounded)
        loss.sum().backward()
        variance = 1 / (1 + math.exp(-h)) if bounded else math.exp(h)
        assert loss.item() == pytest.approx(e2 / (2 * variance) + math.log(math.sqrt(variance)))
        slope = (1 - variance) / 2 if bounded else 0.5
        assert log_variance.grad.item() == pytest.approx(slope * (1 - e2 / variance), abs=1e-12)
        assert error.grad is None


@pytest.mark.parametrize("e2", [0.02, 0.3, 0.9])
def test_the_minimum_is_where_the_variance_equals_the_squared_error(e2):
    h = torch.linspace(-8, 8, 160_001, dtype=torch.float64)
    bounded = h[variance_loss(h, double(e2)).argmin()].item()
    assert bounded == pytest.approx(math.log(e2 / (1 - e2)), abs=1e-3)
    raw = variance_loss(h, double(e2), bounded_variance=False)
    assert h[raw.argmin()].item() == pytest.approx(math.log(e2), abs=1e-3)
    assert raw.min().item() == pytest.approx(0.5 + math.log(e2) / 2, abs=1e-6)


def test_the_printed_equation_has_another_minimum():
    deviation, error = torch.linspace(0.01, 3, 29_901, dtype=torch.float64), 0.6
    printed = error**2 / (2 * deviation) + deviation.log()
    assert deviation[printed.argmin()].item() == pytest.approx(error**2 / 2, abs=1e-3)
    assert deviation[printed.argmin()].item() != pytest.approx(error, abs=0.1)


def test_each_image_has_the_same_weight_whatever_its_number_of_positives():
    targets = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    weights = positive_pair_weights(targets, torch.ones(3, 4, dtype=torch.bool))
    assert weights.tolist() == [[0.25, 0.25, 0, 0], [0, 0, 0, 0.5], [0, 0, 0, 0]]


def test_hardest_negatives_are_chosen_by_score_in_both_directions():
    scores = torch.tensor([[9.0, 3.0, 1.0], [2.0, 8.0, 5.0], [4.0, 0.0, 7.0]])
    weights = hardest_negative_weights(
        scores, torch.eye(3), torch.ones(3, 3, dtype=torch.bool), count=1
    )
    rows, columns = torch.zeros(3, 3), torch.zeros(3, 3)
    rows[[0, 1, 2], [1, 2, 0]] = 1 / 3
    columns[[2, 0, 1], [0, 1, 2]] = 1 / 3
    torch.testing.assert_close(weights, (rows + columns) / 2)


def test_other_captions_of_an_image_and_unknown_pairs_are_never_hard_negatives():
    targets = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    known = torch.tensor([[True, True, True, False], [True, True, True, True]])
    scores = torch.tensor([[9.0, 8.0, 1.0, 7.0], [2.0, 1.0, 5.0, 3.0]])
    weights = hardest_negative_weights(scores, targets, known, count=4)
    assert ((weights > 0) <= (known & (targets == 0))).all()
    assert weights.sum().item() == pytest.approx(1)
    one = hardest_negative_weights(scores, targets, known, count=1)
    assert one[0].nonzero().tolist() == [[2]]


def test_without_positives_and_negatives_all_weights_are_zero():
    known, scores = torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 3)
    assert not positive_pair_weights(torch.zeros(2, 3), known).any()
    assert not hardest_negative_weights(scores, torch.ones(2, 3), known, count=2).any()


def test_the_residual_loss_is_lowest_at_the_mean_squared_error_of_the_known_pairs():
    logits = double(*[-2.0, 0.5, 1.0, 3.0]).view(1, 4)
    targets, known = double(0.0, 1.0, 0.0, 0.0).view(1, 4), torch.tensor([[True] * 3 + [False]])
    h = torch.linspace(-4, 4, 401, dtype=torch.float64)
    losses = [residual_error_loss(x.expand(1, 4), logits, targets, known) for x in h]
    best = h[torch.stack(losses).argmin()].sigmoid().item()
    errors = (targets - logits.sigmoid()).square()[known]
    assert best == pytest.approx(errors.mean().item(), abs=0.01)
