import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import (
    BaseAndNew,
    accuracy,
    base_and_new_metric,
    brier,
    brier_skill,
    class_frequency_groups,
    class_frequency_thirds,
    ece,
    metric_per_class_group,
)


def present(*times):
    """Targets of classes that are present so often, among 200 images."""
    return (np.arange(200)[:, None] < np.array(times)).astype(float)


def lists(groups):
    return {name: columns.tolist() for name, columns in groups.items()}


def test_groups_are_cut_at_a_hundred_and_at_twenty():
    found = class_frequency_groups(present(100, 99, 20, 19, 0, 150))
    assert lists(found) == {"head": [0, 5], "medium": [1, 2], "tail": [3, 4]}


def test_only_known_positives_are_counted():
    targets = present(30, 30)
    known = np.ones((200, 2), dtype=bool)
    known[:15, 1] = False
    assert lists(class_frequency_groups(targets, known))["tail"] == [1]
    assert lists(class_frequency_groups(np.where(known, targets, np.nan)))["tail"] == [1]


def test_thirds_hold_as_many_classes_each_and_ties_stay_together():
    found = class_frequency_thirds(present(1, 60, 5, 70, 8, 90))
    assert lists(found) == {"head": [3, 5], "medium": [1, 4], "tail": [0, 2]}
    found = lists(class_frequency_thirds(present(5, 5, 5, 5, 90, 80)))
    assert found == {"head": [4, 5], "medium": [0, 1, 2, 3], "tail": []}


def test_tail_may_not_begin_above_head():
    with pytest.raises(ConfigError, match=r"tail must not be greater than head; got tail=30"):
        class_frequency_groups(present(1), head=20, tail=30)


@pytest.fixture
def decisions():
    rng = np.random.default_rng(0)
    p = rng.random((50, 6))
    return p, (rng.random((50, 6)) < p).astype(float), rng.random((50, 6)) < 0.8


def test_a_group_is_judged_by_its_own_columns(decisions):
    p, y, known = decisions
    found = metric_per_class_group(ece, p, y, known, {"a": [0, 4], "b": np.array([1]), "none": []})
    assert found["a"] == ece(p[:, [0, 4]], y[:, [0, 4]], known[:, [0, 4]])
    assert found["b"] == ece(p[:, [1]], y[:, [1]], known[:, [1]])
    assert np.isnan(found["none"])


@pytest.mark.parametrize("columns", [[6], [-1], [0.5], [True, False, False, True, False, True]])
def test_invalid_columns_are_refused(columns, decisions):
    with pytest.raises(
        InputError, match=r"columns of new must be whole numbers from 0 to 5; got .* mask"
    ):
        metric_per_class_group(brier, *decisions, {"new": columns})
    with pytest.raises(
        InputError, match=r"columns of new must be whole numbers from 0 to 5; got .* mask"
    ):
        base_and_new_metric(brier, *decisions, new=columns)


def test_a_column_named_twice_counts_once(decisions):
    found = metric_per_class_group(brier, *decisions, {"twice": [3, 1, 3], "once": [1, 3]})
    assert found["twice"] == found["once"]


def test_both_shapes_are_said_when_they_differ(decisions):
    p, y, known = decisions
    with pytest.raises(InputError, match=r"\(50, 5\).*\(50, 6\)"):
        metric_per_class_group(brier, p[:, :5], y, known, {"all": range(6)})


def test_base_are_all_that_are_not_new_and_both_means_are_named(decisions):
    p, y, known = decisions
    found = base_and_new_metric(accuracy, *decisions, new=[5, 2])
    base, new = [0, 1, 3, 4], [2, 5]
    assert found.base == accuracy(p[:, base], y[:, base], known[:, base])
    assert found.new == pytest.approx(accuracy(p[:, new], y[:, new], known[:, new]))
    assert found.arithmetic_mean == pytest.approx((found.base + found.new) / 2)
    assert found.harmonic_mean == pytest.approx(2 / (1 / found.base + 1 / found.new))
    assert found.harmonic_mean < found.arithmetic_mean


def test_the_mean_with_an_empty_group_is_undefined(decisions):
    found = base_and_new_metric(brier, *decisions, new=[])
    assert np.isfinite(found.base)
    assert np.isnan([found.new, found.harmonic_mean, found.arithmetic_mean]).all()


def test_the_harmonic_mean_of_a_negative_value_is_undefined():
    p, y = [[0.9, 0.1], [0.1, 0.9]], [[1, 1], [0, 0]]
    found = base_and_new_metric(brier_skill, p, y, new=[1])
    assert found.new < 0 < found.base
    assert np.isnan(found.harmonic_mean)
    assert found.arithmetic_mean == pytest.approx((found.base + found.new) / 2)
    wrong = base_and_new_metric(partial(accuracy, threshold=0.5), [[0.9, 0.9]], [[0, 0]], new=[1])
    assert wrong.harmonic_mean == 0


def test_the_harmonic_mean_equals_the_published_one_of_each_dataset():
    path = Path(__file__).parents[2] / "golden/variational.json"
    recorded = json.loads(path.read_text())["base_to_novel_check"]
    values = [recorded[name] for name in ("base", "novel", "hm")]
    for base, new, expected in zip(*values, strict=True):
        assert BaseAndNew(base, new).harmonic_mean == pytest.approx(expected, abs=0.0066)
    of_means = BaseAndNew(recorded["mean_base"], recorded["mean_novel"]).harmonic_mean
    assert of_means == pytest.approx(recorded["hm_of_means"], rel=1e-12)
    assert np.mean(recorded["hm"]) == pytest.approx(recorded["mean_of_hms"], rel=1e-12)
    assert of_means != pytest.approx(recorded["printed"], abs=0.2)
