"""Costs, weights and teacher of "Recover and Match", against its released code."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import ConfigError, InputError
from surelabel.transport import (
    add_knowledge_constraint_to_cost,
    knowledge_constrained_cost,
    knowledge_constrained_log_teacher_plan,
    knowledge_constrained_region_weights,
    sinkhorn,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/transport.json").read_text())
SMALL = GOLDEN["small"]
NAMES = {"train": slice(0, 5), "eval_zsl": slice(5, 8), "eval_gzsl": slice(0, 8)}
SPLITS = {"seen": slice(0, 48), "unseen": slice(48, 65), "all": slice(0, 65)}


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def cosines(regions, texts):
    return F.normalize(regions, dim=-1) @ F.normalize(texts, dim=-1).T


def small(part, regions="local", texts="text"):
    inputs = SMALL["inputs"]
    return cosines(double(inputs[regions]), double(inputs[texts])[NAMES[part]])


def clip_like():
    """Features as CLIP has them: all close together, and regions near the labels they show."""
    generator = np.random.default_rng(12)
    common = generator.normal(size=64)
    text = generator.normal(size=(65, 64)) + 2 * common
    local = generator.normal(size=(4, 197, 64)) + 2 * common
    generator.normal(size=(4, 1, 64))
    targets = generator.uniform(size=(4, 48)) < 3 / 48
    for image in range(4):
        targets[image, image] |= not targets[image].any()
        for label in np.flatnonzero(targets[image]):
            local[image, generator.choice(196, size=24, replace=False) + 1] += 0.8 * text[label]
    frozen_local = local + 0.3 * generator.normal(size=local.shape)
    frozen_text = text + 0.1 * generator.normal(size=text.shape)
    seen = cosines(*map(torch.from_numpy, (local[:, 1:], text)))
    return (
        seen,
        cosines(*map(torch.from_numpy, (frozen_local[:, 1:], frozen_text))),
        double(targets),
    )


def matched(similarities, cost, regularization, **settings):
    n, _, c = similarities.shape
    columns = torch.full((n, c), 1 / c, dtype=similarities.dtype)
    rows = knowledge_constrained_region_weights(similarities)
    return sinkhorn(cost, rows, columns, regularization=regularization, **settings)


EXACTLY = {"tolerance": 1e-12, "max_steps": 10_000}


def close(one, other, tolerance=1e-6):
    torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


@pytest.mark.parametrize("part", NAMES)
def test_costs_and_weights_equal_those_of_the_released_code(part):
    close(knowledge_constrained_cost(small(part), sharpness=10), double(SMALL[part]["cost"]), 1e-13)
    close(knowledge_constrained_region_weights(small(part)), double(SMALL[part]["lpd_u"]), 1e-13)


def test_the_teacher_equals_the_released_code_where_labels_are_present():
    present = double(SMALL["inputs"]["target"]) == 1
    logs = knowledge_constrained_log_teacher_plan(
        small("train", "teacher_local", "teacher_text"), present, sharpness=10
    )
    where = present[:, None].expand_as(logs)
    close(logs[where].exp(), double(SMALL["train"]["teacher_raw"])[where], 1e-12)
    assert not logs[~where].any()
    cost, regularization = add_knowledge_constraint_to_cost(
        knowledge_constrained_cost(small("train"), sharpness=10), logs
    )
    close(cost[where], double(SMALL["train"]["cost_transformed"])[where], 1e-12)
    assert regularization == pytest.approx(0.15)


@pytest.mark.parametrize("part", ["eval_zsl", "eval_gzsl"])
def test_plans_for_recognition_equal_the_recorded_optimum(part):
    plan = matched(
        small(part), knowledge_constrained_cost(small(part), sharpness=10), 0.1, **EXACTLY
    )
    close(plan.matrix, double(SMALL[part]["T_converged_POT"]), 1e-12)


def test_the_plan_for_learning_equals_the_recorded_optimum():
    present = double(SMALL["inputs"]["target"]) == 1
    logs = knowledge_constrained_log_teacher_plan(
        small("train", "teacher_local", "teacher_text"), present, sharpness=10
    )
    problem = add_knowledge_constraint_to_cost(
        knowledge_constrained_cost(small("train"), sharpness=10), logs
    )
    plan = matched(small("train"), *problem, **EXACTLY)
    close(plan.matrix, double(SMALL["train"]["T_converged_POT"]), 1e-12)


def test_the_released_plan_for_learning_comes_out_of_its_own_cost():
    cost = double(SMALL["train"]["cost_transformed"])
    plan = matched(small("train"), cost, 0.15, variant="code")
    assert plan.steps.tolist() == [SMALL["train"]["official_iterations"]] * 3
    close(plan.matrix, double(SMALL["train"]["T_official"]), 1e-12)


@pytest.mark.parametrize("split", SPLITS)
def test_features_like_those_of_clip_are_matched_as_recorded(split):
    similarities = clip_like()[0][:, :, SPLITS[split]]
    plan = matched(similarities, knowledge_constrained_cost(similarities), 0.1, **EXACTLY)
    close(plan.apply(similarities), double(GOLDEN["clip_like"][split]["matched"]), 1e-12)
    largest = plan.matrix.amax(2)[:, ::28]
    close(largest, double(GOLDEN["clip_like"][split]["largest"]), 1e-12)


def learning(dtype):
    """Similarities and problem of learning on features like those of CLIP."""
    similarities, frozen, targets = clip_like()
    similarities, frozen = similarities[:, :, :48].to(dtype), frozen[:, :, :48].to(dtype)
    logs = knowledge_constrained_log_teacher_plan(frozen, targets == 1)
    return similarities, *add_knowledge_constraint_to_cost(
        knowledge_constrained_cost(similarities), logs
    )


def test_with_a_teacher_they_are_matched_as_recorded():
    similarities, cost, regularization = learning(torch.float64)
    plan = matched(similarities, cost, regularization, **EXACTLY)
    close(plan.apply(similarities), double(GOLDEN["clip_like"]["train"]["matched"]), 1e-12)


def test_the_released_rule_stops_after_4_steps_here_and_after_12_with_the_released_teacher():
    similarities, cost, regularization = learning(torch.float64)
    _, frozen, targets = clip_like()
    everywhere = knowledge_constrained_log_teacher_plan(frozen[:, :, :48], torch.ones(4, 48))
    released = torch.where(targets[:, None] == 1, everywhere, everywhere.min())
    problem = add_knowledge_constraint_to_cost(knowledge_constrained_cost(similarities), released)
    here = matched(similarities, cost, regularization, variant="code")
    there = matched(similarities, *problem, variant="code")
    assert (here.steps.tolist(), there.steps.tolist()) == ([4] * 4, [12] * 4)
    exact = matched(similarities, cost, regularization, **EXACTLY).matrix
    close(matched(similarities, *problem, **EXACTLY).matrix, exact, 1e-12)
    distances = [(p.matrix - exact).abs().sum((1, 2)).max() for p in (here, there)]
    assert distances[0] < 6e-3
    assert distances[1] < 3e-5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_under_autocast_no_more_than_a_thousandth_of_the_mass_moves(dtype):
    exact = matched(*learning(torch.float64), **EXACTLY).matrix
    with torch.autocast("cpu", dtype=dtype):
        mixed = matched(*learning(torch.float32)).matrix
    assert (mixed.double() - exact).abs().sum((1, 2)).max() < 1e-3


def test_costs_rounded_to_half_precision_move_no_more_than_a_thousandth_of_the_mass():
    similarities, cost, regularization = learning(torch.float64)
    exact = matched(similarities, cost, regularization, **EXACTLY).matrix
    mixed = matched(similarities.float(), cost.half(), regularization, tolerance=1e-6).matrix
    assert (mixed.double() - exact).abs().sum((1, 2)).max() < 1e-3


@given(st.floats(-12, 3), st.integers(0, 100))
def test_the_plan_cannot_depend_on_what_the_teacher_has_where_a_label_is_absent(constant, seed):
    generator = torch.Generator().manual_seed(seed)
    similarities = torch.rand(2, 8, 4, generator=generator, dtype=torch.float64) / 10
    frozen = torch.rand(2, 8, 4, generator=generator, dtype=torch.float64) / 10
    present = torch.rand(2, 4, generator=generator) > 0.5
    logs = knowledge_constrained_log_teacher_plan(frozen, present)
    other = torch.where(present[:, None], logs, constant)
    settings = {"tolerance": 1e-12, "max_steps": 100_000}
    one, two = (
        matched(
            similarities,
            *add_knowledge_constraint_to_cost(knowledge_constrained_cost(similarities), t),
            **settings,
        ).matrix
        for t in (logs, other)
    )
    close(one, two, 1e-10)


def test_a_teacher_pulls_the_plan_towards_itself():
    similarities, frozen, targets = clip_like()
    similarities, present = similarities[:, :, :48], targets == 1
    logs = knowledge_constrained_log_teacher_plan(frozen[:, :, :48], present)
    pulls = []
    for weight in (0.0, 0.05, 0.5):
        problem = add_knowledge_constraint_to_cost(
            knowledge_constrained_cost(similarities), logs, teacher_weight=weight
        )
        plan = matched(similarities, *problem, max_steps=10_000).matrix
        columns = plan / plan.sum(1, keepdim=True)
        distance = (columns * (columns.log() - logs)).sum(1)  # where absent it is no distance
        pulls.append(distance[present].mean().item())
    assert pulls == sorted(pulls, reverse=True)


def test_shares_of_a_region_add_up_to_one():
    similarities = clip_like()[0]
    shares = 1 - knowledge_constrained_cost(similarities)
    close(shares.sum(2), torch.ones(4, 196, dtype=torch.float64), 1e-12)
    close(
        knowledge_constrained_region_weights(similarities).sum(1),
        torch.ones(4, dtype=torch.float64),
        1e-12,
    )


def test_a_new_label_costs_what_it_costs_beside_the_reference_labels_alone():
    similarities = torch.rand(2, 5, 7, generator=torch.Generator().manual_seed(0)) / 20
    reference, is_new = similarities[:, :, :4], torch.arange(7) >= 4
    cost = knowledge_constrained_cost(similarities, reference=reference, is_new=is_new)
    close(cost[:, :, :4], knowledge_constrained_cost(reference), 1e-6)
    for label in range(4, 7):
        beside = torch.cat([reference, similarities[:, :, [label]]], dim=2)
        close(cost[:, :, label], knowledge_constrained_cost(beside)[:, :, 4], 1e-6)


def test_one_label_costs_nothing_anywhere():
    assert not knowledge_constrained_cost(torch.rand(2, 5, 1)).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_works_in_float32_without_gradient(dtype):
    similarities = (torch.rand(2, 5, 3) / 5).to(dtype).requires_grad_()
    logs = knowledge_constrained_log_teacher_plan(similarities, torch.ones(2, 3))
    cost, _ = add_knowledge_constraint_to_cost(knowledge_constrained_cost(similarities), logs)
    for part in (cost, logs, knowledge_constrained_region_weights(similarities)):
        assert part.dtype == torch.float32
        assert not part.requires_grad


@pytest.mark.parametrize(
    "function", [knowledge_constrained_cost, knowledge_constrained_region_weights]
)
def test_refuses_similarities_of_another_shape(function):
    with pytest.raises(InputError, match="similarities must have axes"):
        function(torch.zeros(3, 4))


@pytest.mark.parametrize("given", ["reference", "is_new"])
def test_refuses_reference_labels_without_the_mask_of_new_labels_and_the_reverse(given):
    arrays = {"reference": torch.zeros(2, 5, 4), "is_new": torch.ones(3, dtype=torch.bool)}
    with pytest.raises(InputError, match=f"given together; got only {given}"):
        knowledge_constrained_cost(torch.zeros(2, 5, 3), **{given: arrays[given]})


def test_refuses_a_teacher_of_another_shape():
    with pytest.raises(InputError, match="positive must have axes"):
        knowledge_constrained_log_teacher_plan(torch.zeros(2, 5, 3), torch.ones(2, 4))
    with pytest.raises(InputError, match="log_teacher must have axes"):
        add_knowledge_constraint_to_cost(torch.zeros(2, 5, 3), torch.zeros(2, 5, 4))


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_refuses_settings_that_are_not_above_zero(value):
    zeros, present = torch.zeros(2, 5, 3), torch.ones(2, 3)
    for name, wrong in (
        ("sharpness", lambda: knowledge_constrained_cost(zeros, sharpness=value)),
        ("temperature", lambda: knowledge_constrained_region_weights(zeros, temperature=value)),
        ("focus", lambda: knowledge_constrained_log_teacher_plan(zeros, present, focus=value)),
        (
            "entropy_weight",
            lambda: add_knowledge_constraint_to_cost(zeros, zeros, entropy_weight=value),
        ),
    ):
        with pytest.raises(ConfigError, match=f"{name} must be greater than 0"):
            wrong()


def test_refuses_a_teacher_to_stay_away_from():
    zeros = torch.zeros(2, 5, 3)
    with pytest.raises(ConfigError, match="teacher_weight must be 0 or greater"):
        add_knowledge_constraint_to_cost(zeros, zeros, teacher_weight=-0.1)
