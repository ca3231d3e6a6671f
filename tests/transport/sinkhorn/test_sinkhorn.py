"""Matching against recorded numbers, the linear programme, plain loops, and its own logarithms."""

import json
import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from surelabel.errors import ConfigError, NotConverged
from surelabel.transport import average, sinkhorn

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/transport.json").read_text())
CASES = GOLDEN["sinkhorn"]["cases"]
recorded = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['reg']}")
kernel = import_module("surelabel.transport.sinkhorn_iteration.sinkhorn_kernel")


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def drawn(images=4, regions=12, labels=5, seed=0):
    """Costs in [0, 1], unequal weights of regions, equal weights of labels."""
    generator = torch.Generator().manual_seed(seed)
    cost = torch.rand(images, regions, labels, generator=generator, dtype=torch.float64)
    rows = torch.rand(images, regions, generator=generator, dtype=torch.float64) + 0.1
    columns = torch.full((images, labels), 1 / labels, dtype=torch.float64)
    return cost, rows / rows.sum(1, keepdim=True), columns


def exactly(*problem, **settings):
    """The optimum as well as float64 can have it."""
    plan = sinkhorn(*problem, tolerance=1e-13, max_steps=100_000, **settings)
    return plan.accept_unconverged().matrix


def close(one, other, tolerance=1e-6):
    torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


@recorded
def test_equals_the_recorded_optimum(case):
    cost, rows, columns = (double(GOLDEN["sinkhorn"][name]) for name in ("M", "a", "b"))
    got = exactly(cost, rows, columns, regularization=case["reg"])
    close(got, double(case["T_converged"]), 1e-12)


@recorded
def test_variant_code_equals_what_the_released_code_gave(case):
    cost, rows, columns = (double(GOLDEN["sinkhorn"][name]) for name in ("M", "a", "b"))
    plan = sinkhorn(cost, rows, columns, regularization=case["reg"], variant="code")
    assert plan.steps.tolist() == [case["official_iterations"]] * 2
    assert plan.converged.tolist() == [case["official_iterations"] < 100] * 2
    close(plan.accept_unconverged().matrix, double(case["T_official"]), 1e-12)


def by_hand(cost, rows, columns, regularization, steps):
    """The iteration as loops over numbers."""
    kernel = [[math.exp(-x / regularization) for x in row] for row in cost]
    right = [1.0] * len(columns)
    for _ in range(steps):
        left = [
            u / sum(k * r for k, r in zip(row, right, strict=True))
            for u, row in zip(rows, kernel, strict=True)
        ]
        right = [
            v / sum(a * row[j] for a, row in zip(left, kernel, strict=True))
            for j, v in enumerate(columns)
        ]
    return [
        [a * k * b for k, b in zip(row, right, strict=True)]
        for a, row in zip(left, kernel, strict=True)
    ]


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("variant", ["paper", "code"])
def test_after_some_steps_it_is_where_plain_loops_are(steps, variant):
    cost, rows, columns = drawn(1)
    plan = sinkhorn(cost, rows, columns, tolerance=1e-15, max_steps=steps, variant=variant)
    expected = by_hand(cost[0].tolist(), rows[0].tolist(), columns[0].tolist(), 0.1, steps)
    close(plan.accept_unconverged().matrix[0], double(expected), 1e-14)


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.floats(0.02, 10),
    st.sampled_from([1e-2, 1e-4, 1e-7]),
    st.integers(0, 1000),
)
def test_both_sides_get_their_weights_as_well_as_asked(regions, labels, soft, tolerance, seed):
    cost, rows, columns = drawn(3, regions, labels, seed)
    settings = {"regularization": soft, "tolerance": tolerance, "max_steps": 100_000}
    plan = sinkhorn(cost, rows, columns, **settings)
    close(plan.matrix.sum(1), columns, 1e-12)
    missed = (plan.matrix.sum(2) - rows).abs().sum(1)
    assert (missed <= tolerance).all()
    close(plan.error, missed, 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_with_less_and_less_entropy_the_cost_is_that_of_the_linear_programme(seed):
    cost, rows, columns = drawn(1, 6, 4, seed)
    sums = [np.kron(np.eye(6), np.ones(4)), np.kron(np.ones(6), np.eye(4))]
    least = linprog(
        cost.flatten().numpy(), A_eq=np.vstack(sums), b_eq=torch.cat([rows, columns], 1)[0].numpy()
    ).fun
    above = [
        (exactly(cost, rows, columns, regularization=soft) * cost).sum().item() - least
        for soft in (0.1, 0.01, 0.001)
    ]
    assert above == sorted(above, reverse=True)
    assert above[-1] == pytest.approx(0, abs=1e-4)


def test_with_more_and_more_entropy_it_is_the_independent_plan():
    problem = drawn()
    close(exactly(*problem, regularization=1e7), average(*problem).matrix)


def test_no_other_plan_with_the_same_sums_is_better():
    cost, rows, columns = drawn(1)
    best = exactly(cost, rows, columns)

    def value(plan):
        return ((plan * cost).sum() + 0.1 * (plan * plan.log()).sum()).item()

    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        i, k = torch.randperm(12, generator=generator)[:2]
        j, m = torch.randperm(5, generator=generator)[:2]
        moved, share = best.clone(), 0.3 * min(best[0, i, j], best[0, k, m])
        moved[0, [i, k], [j, m]] -= share
        moved[0, [i, k], [m, j]] += share
        assert value(moved) > value(best)


@pytest.mark.parametrize("shape", [(5, 1), (1, 5)], ids=["one label", "one region"])
def test_with_one_label_or_one_region_there_is_nothing_to_choose(shape):
    cost, rows, columns = drawn(2, *shape)
    plan = sinkhorn(cost, rows, columns)
    assert (plan.steps == 1).all()
    close(plan.matrix, rows[:, :, None] * columns[:, None], 1e-15)


@pytest.mark.parametrize("soft", [1.0, 0.1, 0.03])
def test_kernel_and_logarithms_take_the_same_steps_to_the_same_plan(soft, monkeypatch):
    problem = drawn()
    by_kernel = sinkhorn(*problem, regularization=soft, max_steps=2000)
    monkeypatch.setitem(kernel.MAX_EXPONENT, torch.float64, -1.0)
    by_logarithms = sinkhorn(*problem, regularization=soft, max_steps=2000)
    assert not torch.equal(by_logarithms.left, by_kernel.left)
    assert torch.equal(by_logarithms.steps, by_kernel.steps)
    close(by_logarithms.matrix, by_kernel.matrix, 1e-14)
    close(by_logarithms.error, by_kernel.error, 1e-14)


def test_images_of_both_domains_stand_in_one_batch_in_their_order():
    cost, rows, columns = (part.float() for part in drawn(5))
    hard = torch.tensor([True, False, False, True, False])
    cost[hard] *= 60  # beyond 40 times the regularization
    settings = {"max_steps": 30_000}
    together = sinkhorn(cost, rows, columns, **settings)
    for image in range(5):
        some = slice(image, image + 1)
        alone = sinkhorn(cost[some], rows[some], columns[some], **settings)
        assert torch.equal(alone.matrix, together.matrix[some])
        assert alone.steps == together.steps[image]
    assert (together.right[hard] == 1).all()
    assert not (together.right[~hard] == 1).any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_just_inside_the_kernels_limit_it_is_as_exact_as_by_logarithms(dtype, monkeypatch):
    cost, rows, columns = (part.to(dtype) for part in drawn(6, 9, 4))
    low, high = cost.amin((1, 2), keepdim=True), cost.amax((1, 2), keepdim=True)
    cost = (cost - low) / (high - low) * 0.999
    settings = {
        "regularization": 1 / kernel.MAX_EXPONENT[dtype],
        "tolerance": 1e-5,
        "max_steps": 20_000,
    }
    by_kernel = sinkhorn(cost, rows, columns, **settings)
    monkeypatch.setitem(kernel.MAX_EXPONENT, dtype, -1.0)
    by_logarithms = sinkhorn(cost, rows, columns, **settings)
    close(by_kernel.matrix.double(), by_logarithms.matrix.double(), 1e-5)


def test_hardly_any_entropy_still_has_mass_one():
    cost, rows, columns = (part.float() for part in drawn())
    plan = sinkhorn(cost, rows, columns, regularization=1e-4).accept_unconverged()
    assert plan.matrix.isfinite().all()
    close(plan.matrix.sum((1, 2)), torch.ones(4))


@pytest.mark.parametrize("near", [1, 10_000, 2**30], ids=["one", "some", "all"])
def test_how_many_images_are_worked_on_at_a_time_does_not_matter(near, monkeypatch):
    problem = drawn(9, 20, 7)
    expected = sinkhorn(*problem).matrix
    monkeypatch.setattr(kernel, "BYTES_PER_BLOCK", near)
    close(sinkhorn(*problem).matrix, expected, 1e-15)


def test_every_image_stops_by_itself():
    cost, rows, columns = drawn()
    cost *= torch.tensor([0.01, 0.5, 1.0, 1.5])[:, None, None]
    steps = sinkhorn(cost, rows, columns).steps.tolist()
    assert steps == sorted(set(steps))


def test_variant_code_lets_images_depend_on_their_batch():
    cost, rows, columns = drawn()
    cost[0] *= 0.1
    together = sinkhorn(cost, rows, columns, variant="code")
    alone = sinkhorn(cost[:1], rows[:1], columns[:1], variant="code")
    assert alone.steps[0] < together.steps[0]
    assert together.steps.unique().numel() == 1


def test_variant_code_is_not_touched_by_autocast_either():
    problem = [part.float() for part in drawn()]
    expected = sinkhorn(*problem, variant="code").matrix
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(sinkhorn(*problem, variant="code").matrix, expected)


def test_variant_code_says_when_its_kernel_vanishes():
    cost, rows, columns = (part.float() for part in drawn())
    with pytest.raises(NotConverged, match=r'must not underflow.*variant="paper"'):
        sinkhorn(cost + 1, rows, columns, regularization=1e-3, variant="code")


@pytest.mark.parametrize("name", ["regularization", "tolerance", "max_steps"])
@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_refuses_settings_that_are_not_above_zero(name, value):
    with pytest.raises(ConfigError, match=f"{name} must be greater than 0"):
        sinkhorn(*drawn(), **{name: value})


def test_refuses_an_unknown_variant():
    with pytest.raises(ConfigError, match='variant must be "paper" or "code"'):
        sinkhorn(*drawn(), variant="ours")
