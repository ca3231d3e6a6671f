import re

import numpy as np
import pytest

from surelabel.report.decision_costs import (
    MISS_COSTS,
    compute_decision_costs,
    decision_costs_as_json,
    render_decision_cost_table,
)


def costs_of(found):
    return compute_decision_costs(found.predictions.probabilities, found.targets, found.known)


def test_the_cost_counts_false_positives_and_missed_labels_of_known_targets():
    p = np.array([[0.9, 0.6], [0.4, 0.1]])
    y = np.array([[1.0, 0.0], [1.0, 0.0]])
    known = np.array([[True, True], [True, False]])
    cost = next(c for c in compute_decision_costs(p, y, known) if c.miss_cost == 2)
    assert cost.threshold == pytest.approx(1 / 3)
    assert cost.realized.value == 0.5  # one false positive in two images
    assert cost.at_half == 1.5  # and one missed label, which costs 2
    assert cost.expected == pytest.approx((0.1 + 0.4 + 0.6) / 2)
    assert cost.by_prevalence == 0  # the first label is always positive, the second never
    assert np.isnan(cost.saving.value)


def test_the_expected_cost_of_calibrated_probabilities_is_the_realized_cost(judged):
    for cost in costs_of(judged(count=800)):
        assert cost.realized.low * 0.95 < cost.expected < cost.realized.high * 1.05


def test_no_other_threshold_has_a_lower_expected_cost(judged):
    p = judged(count=200).predictions.probabilities
    for cost in compute_decision_costs(p, p, np.ones(p.shape, bool)):
        assert cost.realized.value <= min(cost.at_half, cost.by_prevalence) + 1e-9
        assert cost.realized.value == pytest.approx(cost.expected)
        others = [
            np.where(p >= t, 1 - p, cost.miss_cost * p).sum(axis=1).mean()
            for t in np.linspace(0.02, 0.98, 25)
        ]
        assert cost.realized.value <= min(others) + 1e-9


def test_the_saving_is_relative_to_the_prevalence(judged):
    for cost in costs_of(judged(count=200, unknown=0.2)):
        expected = 1 - cost.realized.value / cost.by_prevalence
        assert cost.saving.value == pytest.approx(expected)
        assert cost.saving.low < cost.saving.value < cost.saving.high


def test_the_table_has_a_row_of_each_cost_ratio(judged):
    costs = costs_of(judged())
    text = render_decision_cost_table(costs)
    titles = re.findall(r'<th scope="row">([^<]*)</th>', text)
    assert len(titles) == len(MISS_COSTS)
    assert titles[0] == "1/10 of a false positive"
    assert titles[3:5] == ["1 false positive", "2 false positives"]
    assert f"<td>{costs[-1].at_half:.3f}</td>" in text
    assert "nan" not in render_decision_cost_table(costs_of(judged(count=1)))


def test_the_json_has_every_cost(judged):
    costs = costs_of(judged())
    held = decision_costs_as_json(costs)
    assert [row["miss_cost"] for row in held] == list(MISS_COSTS)
    assert held[0]["realized"]["value"] == costs[0].realized.value
