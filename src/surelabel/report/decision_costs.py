"""Compute the expected and the realized cost of decisions at several cost ratios."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.markup import (
    Markup,
    join_markup,
    markup_element,
    markup_header_cells,
    markup_table_region,
)
from surelabel.metrics import ConfidenceInterval
from surelabel.report.metric_descriptions import UNDEFINED, format_described_probability
from surelabel.report.ratio_intervals import ratio_of_sums_intervals

MISS_COSTS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # relative to a false positive
FRACTIONS = {0.1: "1/10", 0.2: "1/5", 0.5: "1/2"}
HEADER = (
    "cost of a missed label",
    "threshold",
    "expected cost",
    "realized cost",
    "cost at threshold 50 %",
    "cost by prevalence only",
    "saving relative to prevalence",
)
INTRODUCTION = (
    "If a missed label costs m times as much as a false positive, the expected cost is lowest at a "
    "probability threshold of 1/(1 + m). The command ",
    " uses this threshold. The table shows the mean cost per image. The unit is the cost of one "
    "false positive.",
)
NOTE = (
    "The expected cost is computed from the probabilities, and the realized cost from the targets. "
    "If the probabilities are calibrated, both costs are approximately equal. For the cost by "
    "prevalence only, each label is predicted for all images or for no image, whichever is cheaper "
    "at the prevalence of the label. Unknown targets are ignored. Intervals are 95 % bootstrap "
    "intervals over images."
)


@dataclass(frozen=True)
class DecisionCost:
    """Mean cost of the decisions of an image, in units of the cost of one false positive.

    Attributes:
        miss_cost: Cost of a missed label relative to a false positive.
        threshold: Probability threshold with the lowest expected cost, 1 / (1 + miss_cost).
        expected: Cost at the threshold, computed from the probabilities.
        realized: Cost at the threshold, computed from the targets, with its 95 % interval.
        at_half: Cost at a threshold of 0.5, computed from the targets.
        by_prevalence: Cost if each label is predicted for all images or for no image, whichever is
            cheaper at the prevalence of the label.
        saving: Reduction of the cost relative to ``by_prevalence``, with its 95 % interval. If
            ``by_prevalence`` is 0, the value is NaN.
    """

    miss_cost: float
    threshold: float
    expected: float
    realized: ConfidenceInterval
    at_half: float
    by_prevalence: float
    saving: ConfidenceInterval


def compute_decision_costs(
    probabilities: Array, targets: Array, known: Flags
) -> list[DecisionCost]:
    """Return the costs of decisions at each cost ratio of ``MISS_COSTS``.

    Args:
        probabilities: Calibrated probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
    """
    n_known = np.maximum(known.sum(axis=0), 1)
    prevalence = np.where(known, targets, 0.0).sum(axis=0) / n_known
    return [
        _decision_cost(miss_cost, probabilities, targets, known, prevalence)
        for miss_cost in MISS_COSTS
    ]


def _decision_cost(
    miss_cost: float, probabilities: Array, targets: Array, known: Flags, prevalence: Array
) -> DecisionCost:
    threshold = 1 / (1 + miss_cost)
    is_predicted = probabilities >= threshold
    expected = _cost_per_image(is_predicted, probabilities, known, miss_cost)
    realized, at_half, by_prevalence = (
        _cost_per_image(flags, targets, known, miss_cost)
        for flags in (is_predicted, probabilities >= 0.5, prevalence >= threshold)
    )
    mean, saving = ratio_of_sums_intervals(
        np.stack([realized, by_prevalence - realized], axis=1),
        np.stack([np.ones(len(known)), by_prevalence], axis=1),
    )
    return DecisionCost(
        miss_cost=miss_cost,
        threshold=threshold,
        expected=float(expected.mean()),
        realized=mean,
        at_half=float(at_half.mean()),
        by_prevalence=float(by_prevalence.mean()),
        saving=saving,
    )


def _cost_per_image(is_predicted: Flags, targets: Array, known: Flags, miss_cost: float) -> Array:
    """Return the cost of each image, summed over its decisions with known targets, ``(n,)``.

    Args:
        is_predicted: True where a label is predicted, ``(n, c)`` or ``(c,)``.
        targets: Targets, or probabilities for the expected cost, ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        miss_cost: Cost of a missed label relative to a false positive.
    """
    costs = np.where(is_predicted, 1 - targets, miss_cost * targets)
    total: Array = np.where(known, costs, 0.0).sum(axis=1)
    return total


def render_decision_cost_table(costs: Sequence[DecisionCost]) -> Markup:
    """Return an HTML table of the costs, with a note that defines them."""
    rows = [_decision_cost_row(cost) for cost in costs]
    return join_markup(
        markup_element(
            "p",
            INTRODUCTION[0],
            markup_element("code", "surelabel tag --cost-of-miss m"),
            INTRODUCTION[1],
        ),
        markup_table_region("Cost of decisions", markup_header_cells(HEADER), rows),
        markup_element("p", NOTE, class_="soft"),
    )


def decision_costs_as_json(costs: Sequence[DecisionCost]) -> list[dict[str, Any]]:
    """Return the attributes of each cost as a JSON object; undefined values are NaN."""
    return [asdict(cost) for cost in costs]


def _decision_cost_row(cost: DecisionCost) -> Markup:
    return markup_element(
        "tr",
        markup_element("th", _miss_cost_text(cost.miss_cost), scope="row"),
        markup_element("td", format_described_probability(cost.threshold)),
        markup_element("td", f"{cost.expected:.3f}"),
        markup_element(
            "td",
            f"{cost.realized.value:.3f}",
            *_bounds(f"{cost.realized.low:.3f} to {cost.realized.high:.3f}", cost.realized),
        ),
        markup_element("td", f"{cost.at_half:.3f}"),
        markup_element("td", f"{cost.by_prevalence:.3f}"),
        markup_element("td", *_saving_cell(cost.saving)),
    )


def _miss_cost_text(miss_cost: float) -> str:
    if miss_cost in FRACTIONS:
        return f"{FRACTIONS[miss_cost]} of a false positive"
    return "1 false positive" if miss_cost == 1 else f"{miss_cost:g} false positives"


def _saving_cell(saving: ConfidenceInterval) -> list[str]:
    if np.isnan(saving.value):
        return [UNDEFINED]
    return [
        f"{round(100 * saving.value)} %",
        *_bounds(f"{_whole_percent(saving.low)} to {_whole_percent(saving.high)} %", saving),
    ]


def _whole_percent(value: float) -> str:
    return "–" if np.isnan(value) else str(round(100 * value))


def _bounds(text: str, interval: ConfidenceInterval) -> list[Markup]:
    is_known = interval.low < interval.high
    return [markup_element("div", text, class_="interval")] if is_known else []
