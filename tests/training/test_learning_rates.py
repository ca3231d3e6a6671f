import math

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import nn

from surelabel.errors import ConfigError
from surelabel.optimizers import OPTIMIZERS
from surelabel.training.learning_rates import (
    learning_rate_parameter_groups,
    learning_rate_schedule,
)


def sizes(steps, warm_up, rates=(1.0,)):
    """The step size of each step, a list for each group."""
    groups = [{"params": [nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    pace = learning_rate_schedule(optimizer, steps, warm_up)
    seen = []
    for _ in range(steps):
        seen.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        pace.step()
    return [list(of_a_group) for of_a_group in zip(*seen, strict=True)]


def by_hand(steps, warm_up):
    rising = min(round(warm_up * steps), steps - 1)
    rise = [k / (rising + 1) for k in range(1, rising + 1)]
    falling = steps - rising
    return rise + [(1 + math.cos(math.pi * k / falling)) / 2 for k in range(falling)]


@hypothesis_settings(max_examples=60, deadline=None)
@given(steps=st.integers(1, 60), warm_up=st.sampled_from([0.0, 0.05, 0.3, 0.5, 0.99]))
def test_step_sizes_rise_along_a_line_and_fall_along_a_cosine(steps, warm_up):
    (found,) = sizes(steps, warm_up)
    assert found == pytest.approx(by_hand(steps, warm_up), abs=1e-12)
    assert max(found) == pytest.approx(1.0)


def test_without_warm_up_it_is_the_cosine_of_torch():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    assert (
        type(learning_rate_schedule(optimizer, 9, 0.0))
        is torch.optim.lr_scheduler.CosineAnnealingLR
    )


def test_parts_keep_their_rates_while_it_rises():
    whole, half, none = sizes(10, 0.4, rates=(1.0, 0.5, 0.0))
    assert half == pytest.approx([size / 2 for size in whole])
    assert none == [0.0] * 10


def test_a_stopped_schedule_goes_on():
    expected, optimizers = sizes(8, 0.5)[0], []
    for _ in range(2):
        optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
        optimizers.append((optimizer, learning_rate_schedule(optimizer, 8, 0.5)))
    (first, pace), (second, rest) = optimizers
    for step in range(8):
        assert first.param_groups[0]["lr"] == pytest.approx(expected[step])
        first.step()
        pace.step()
        if step in (1, 5):
            second.load_state_dict(first.state_dict())
            rest.load_state_dict(pace.state_dict())
            first, pace, second, rest = second, rest, first, pace


@pytest.mark.parametrize("wrong", [-0.1, 1.0, float("nan")])
def test_a_share_out_of_range_is_refused(wrong):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    with pytest.raises(ConfigError, match=r"warm_up must be in \[0, 1\); got"):
        learning_rate_schedule(optimizer, 10, wrong)


class Axes(nn.Module):
    """One parameter of each number of axes, a frozen one, and a part that is slower."""

    def __init__(self):
        super().__init__()
        self.learning_rate_scales = {"slow": 0.5}
        self.scalar, self.bias = nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.ones(3))
        self.matrix, self.filters = (nn.Parameter(torch.ones(s)) for s in ((3, 1), (2, 1, 1, 1)))
        self.frozen = nn.Parameter(torch.ones(2, 2), requires_grad=False)
        self.slow = nn.Linear(2, 2)


class Source:
    """A source with a bias and a matrix of its own."""

    def __init__(self):
        self.own = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2, 2))]

    def parameters(self):
        return self.own


def test_weight_decay_is_for_parameters_of_two_axes_or_more_only():
    method, source = Axes(), Source()
    groups = learning_rate_parameter_groups(method, source, 0.2, 0.1)
    decay, rate = (
        {id(p): group[key] for group in groups for p in group["params"]}
        for key in ("weight_decay", "lr")
    )
    for parameter in (method.matrix, method.filters, method.slow.weight, source.own[1]):
        assert decay.pop(id(parameter)) == 0.1
    for parameter in (method.scalar, method.bias, method.slow.bias, source.own[0]):
        assert decay.pop(id(parameter)) == 0.0
    assert not decay  # the frozen parameter is in no group
    slow = {id(parameter) for parameter in method.slow.parameters()}
    assert all(value == (0.1 if one in slow else 0.2) for one, value in rate.items())
    assert sum(len(group["params"]) for group in groups) == len(rate) == 8


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_without_gradient_shrinks_matrices_and_leaves_biases(name):
    method, source = Axes(), Source()
    optimizer = OPTIMIZERS[name](learning_rate_parameter_groups(method, source, 0.2, 0.1), lr=0.2)
    parameters = [*method.parameters(), *source.own]
    before = [parameter.detach().clone() for parameter in parameters]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    optimizer.step()
    slow = [id(parameter) for parameter in method.slow.parameters()]
    # a gradient of 0 is orthogonal to the matrix, so adamp considers it scale-invariant: wd_ratio
    decay = 0.1 * (0.1 if name == "adamp" else 1.0)
    for parameter, was in zip(parameters, before, strict=True):
        rate = 0.1 if id(parameter) in slow else 0.2
        decays = parameter.ndim >= 2 and parameter.requires_grad
        torch.testing.assert_close(parameter.detach(), was * (1 - rate * decay * decays))
