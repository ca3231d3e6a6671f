import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import nn

from surelabel.errors import ConfigError
from surelabel.training import WeightAverage


def walk(method, steps, decay, seed=0):
    """Weights after each step of a random walk, and the average that saw them."""
    generator = torch.Generator().manual_seed(seed)
    average, seen = WeightAverage(method, decay), []
    for _ in range(steps):
        with torch.no_grad():
            for parameter in method.parameters():
                parameter += torch.randn(
                    parameter.shape, generator=generator, dtype=parameter.dtype
                )
        average.update()
        seen.append([p.detach().clone() for p in method.parameters()])
    return average, seen


def by_hand(seen, decay, which):
    counts = [decay ** (len(seen) - 1 - step) for step in range(len(seen))]
    total = torch.zeros_like(seen[0][which])
    for count, weights in zip(counts, seen, strict=True):
        total += count * weights[which]
    return total / sum(counts)


@hypothesis_settings(max_examples=40, deadline=None)
@given(steps=st.integers(1, 30), decay=st.sampled_from([0.0, 0.5, 0.9, 0.999, 1 - 1e-9]))
def test_it_is_the_weighted_mean_of_all_steps(steps, decay):
    method = nn.Linear(3, 2).double()
    average, seen = walk(method, steps, decay)
    average.copy_to_method()
    for which, parameter in enumerate(method.parameters()):
        torch.testing.assert_close(
            parameter.detach(), by_hand(seen, decay, which), rtol=1e-6, atol=1e-7
        )


def test_where_a_run_begins_has_no_share_in_it():
    method = nn.Linear(3, 2)
    nn.init.constant_(method.weight, 1e6)
    average = WeightAverage(method, 0.9999)
    nn.init.constant_(method.weight, 2.0)
    average.update()
    average.copy_to_method()
    assert torch.equal(method.weight, torch.full((2, 3), 2.0))


def test_without_a_step_everything_stays_as_it_is():
    method = nn.Linear(3, 2)
    before = method.weight.detach().clone()
    WeightAverage(method, 0.9).copy_to_method()
    assert torch.equal(method.weight, before)


def test_a_decay_of_zero_is_the_last_step_alone():
    method = nn.Linear(3, 2)
    average, seen = walk(method, 5, 0.0)
    average.copy_to_method()
    assert torch.equal(method.weight, seen[-1][0])


def test_running_statistics_are_averaged_and_counters_are_not():
    method, generator = nn.BatchNorm1d(2), torch.Generator().manual_seed(0)
    average, seen = WeightAverage(method, 0.5), []
    for _ in range(4):
        method(3 + torch.randn(8, 2, generator=generator))
        average.update()
        seen.append([method.running_mean.clone(), method.running_var.clone()])
    average.copy_to_method()
    torch.testing.assert_close(method.running_mean, by_hand(seen, 0.5, 0))
    torch.testing.assert_close(method.running_var, by_hand(seen, 0.5, 1))
    assert method.num_batches_tracked.item() == 4


def test_what_is_frozen_and_what_is_a_mask_is_left_alone():
    method = nn.Linear(2, 2)
    method.bias.requires_grad_(False)
    method.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    method.register_buffer("table", torch.tensor([0.1, 1e30]))
    average = WeightAverage(method, 0.9)
    for step in range(3):
        nn.init.constant_(method.weight, float(step))
        nn.init.constant_(method.bias, float(step))
        average.update()
    average.copy_to_method()
    assert method.bias.tolist() == [2.0, 2.0]
    assert method.mask.tolist() == [0.0, -torch.inf]
    assert torch.equal(method.table, torch.tensor([0.1, 1e30]))
    assert 1.0 < method.weight[0, 0].item() < 2.0


def test_it_goes_on_from_where_it_was():
    whole, first, second = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(3, 2)
    for method in (first, second):
        method.load_state_dict(whole.state_dict())
    expected, seen = walk(whole, 6, 0.8)
    average = WeightAverage(first, 0.8)
    for weights in seen[:3]:
        copy(first, weights)
        average.update()
    resumed = WeightAverage(second, 0.8)
    resumed.load_state_dict(average.state_dict())
    for weights in seen[3:]:
        copy(second, weights)
        resumed.update()
    expected.copy_to_method()
    resumed.copy_to_method()
    assert torch.equal(second.weight, whole.weight)
    assert torch.equal(second.bias, whole.bias)


def copy(method, weights):
    with torch.no_grad():
        for parameter, value in zip(method.parameters(), weights, strict=True):
            parameter.copy_(value)


@pytest.mark.parametrize("wrong", [-0.1, 1.0, float("nan")])
def test_a_decay_out_of_range_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"ema_decay must be in \[0, 1\); got"):
        WeightAverage(nn.Linear(1, 1), wrong)
