"""The sample against the exact sum: equal on average, whatever is drawn."""

import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.records import TrainingStep
from surelabel.regularizers import label_pair, label_pair_sampled


@pytest.fixture
def step():
    """Three images of 40 labels: few present, many present, graded."""
    generator = torch.Generator().manual_seed(0)
    z = 2 * torch.randn(3, 40, generator=generator, dtype=torch.float64)
    targets = torch.zeros(3, 40, dtype=torch.float64)
    targets[0, :3] = 1
    targets[1, :37] = 1
    targets[2, :10] = torch.rand(10, generator=generator, dtype=torch.float64)
    return TrainingStep(z, z, targets, torch.rand(3, 40, generator=generator) > 0.1)


def test_value_and_gradient_are_exact_on_average(step):
    z = step.scores.requires_grad_()
    exact = label_pair(step)
    (pull,) = torch.autograd.grad(exact, z)
    draws = []
    for seed in range(800):
        value = label_pair_sampled(step, negatives=4, seed=seed)
        draws.append(torch.cat([value.detach()[None], torch.autograd.grad(value, z)[0].ravel()]))
    found = torch.stack(draws)
    expected = torch.cat([exact.detach()[None], pull.ravel()])
    spread = found.std(0) / len(draws) ** 0.5
    off = (found.mean(0) - expected).abs()
    assert (off <= 4.5 * spread + 1e-12).all()
    assert spread[0] < 0.02 * exact


def test_with_all_absent_labels_drawn_it_is_exact(step):
    torch.testing.assert_close(label_pair_sampled(step, negatives=40), label_pair(step))


def test_a_seed_repeats_the_sample_and_none_changes_it(step):
    def draw(seed=None):
        return label_pair_sampled(step, negatives=2, seed=seed)

    before = torch.get_rng_state()
    assert torch.equal(draw(3), draw(3))
    assert not torch.equal(draw(3), draw(4))
    assert torch.equal(before, torch.get_rng_state())
    assert not torch.equal(draw(), draw())
    torch.set_rng_state(before)


@pytest.mark.parametrize("negatives", [0, -3])
def test_an_empty_sample_is_refused(step, negatives):
    with pytest.raises(ConfigError, match=rf"at least 1; got {negatives}"):
        label_pair_sampled(step, negatives=negatives)
