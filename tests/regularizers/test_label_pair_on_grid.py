"""The grid against the exact sum: inside its stated bounds, and no slower for many present."""

from importlib import import_module

import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.records import TrainingStep
from surelabel.regularizers import label_pair, label_pair_on_grid


def step_of(values, targets):
    return TrainingStep(values, values, targets, torch.ones_like(targets, dtype=torch.bool))


def value_and_gradient(regularizer, z, targets, **settings):
    z = z.clone().requires_grad_()
    value = regularizer(step_of(z, targets), **settings)
    return value.detach(), torch.autograd.grad(value, z)[0]


@pytest.mark.parametrize("spacing", [1.0, 1 / 4, 1 / 64])
@pytest.mark.parametrize("density", [0.05, 0.5, 0.9])
def test_stays_inside_its_bounds(spacing, density):
    generator = torch.Generator().manual_seed(0)
    z = 3 * torch.randn(12, 60, generator=generator, dtype=torch.float64)
    targets = (torch.rand(12, 60, generator=generator) < density).double()
    exact, pull = value_and_gradient(label_pair, z, targets)
    value, gradient = value_and_gradient(label_pair_on_grid, z, targets, spacing=spacing)
    share = 2 / (60 * 59 * 12)
    counts = targets.sum(1, keepdim=True)
    pairs = (counts * (60 - counts)).sum().item()
    assert -1e-12 <= (value - exact).item() <= spacing**2 / 16 * pairs * share
    partners = torch.where(targets == 1, 60 - counts, counts)
    allowed = (spacing / 8 + spacing**2 / 80) * partners * share
    assert ((gradient - pull).abs() <= allowed).all()


def test_a_pair_at_the_worst_place_reaches_the_bound_on_its_charge():
    middle, targets = torch.full((1, 2), 0.5, dtype=torch.float64), torch.tensor([[1.0, 0.0]])
    error = label_pair_on_grid(step_of(middle, targets), spacing=1.0) - label_pair(
        step_of(middle, targets)
    )
    assert 0.9 / 16 < error.item() <= 1 / 16


def test_values_on_the_grid_are_charged_exactly():
    z = torch.tensor([[-3.5, 0.25, 1.0, 2.0, 0.25]], dtype=torch.float64)
    targets = torch.tensor([[1.0, 0.0, 1.0, 0.0, 1.0]])
    got, exact = label_pair_on_grid(step_of(z, targets)), label_pair(step_of(z, targets))
    torch.testing.assert_close(got, exact, atol=1e-13, rtol=0)


def test_an_image_too_wide_for_the_grid_is_worked_out_exactly(monkeypatch):
    monkeypatch.setattr(
        import_module("surelabel.regularizers.label_pair_on_grid"), "MAX_GRID_POINTS", 16
    )
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(4, 20, generator=generator, dtype=torch.float64)
    z[1:3] *= 100
    targets = (torch.rand(4, 20, generator=generator) > 0.5).double()
    wide = step_of(z[1:3], targets[1:3])
    assert torch.equal(label_pair_on_grid(wide, spacing=0.5), label_pair(wide))
    both = label_pair_on_grid(step_of(z, targets), spacing=0.5)
    apart = label_pair_on_grid(step_of(z[::3], targets[::3]), spacing=0.5)
    torch.testing.assert_close(both, (apart + label_pair(wide)) / 2)


@pytest.mark.parametrize("spacing", [0.0, -1.0, float("inf")])
def test_an_invalid_spacing_is_refused(spacing):
    with pytest.raises(ConfigError, match=rf"> 0; got {spacing}"):
        label_pair_on_grid(step_of(torch.zeros(1, 2), torch.eye(2)[:1]), spacing=spacing)
