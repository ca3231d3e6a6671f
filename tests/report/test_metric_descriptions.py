import pytest

from surelabel.metrics import POOLED
from surelabel.report.metric_descriptions import (
    METRIC_DESCRIPTIONS,
    describe_metric,
    format_described_metric_value,
    format_described_probability,
    sort_by_metric_descriptions,
)


@pytest.mark.parametrize("metric", POOLED)
def test_every_metric_is_explained(metric):
    meaning = describe_metric(metric)
    assert meaning.title
    assert meaning.unit in ("%", "points", "nats")
    assert meaning.better in ("higher", "lower")
    assert meaning.text.endswith(".")


def test_nothing_is_explained_that_does_not_exist():
    assert set(METRIC_DESCRIPTIONS) <= set(POOLED)


def test_a_metric_without_words_is_shown_under_its_name():
    assert describe_metric("my_own").title == "my own"
    assert sort_by_metric_descriptions(["my_own", "ece", "brier_skill"]) == [
        "brier_skill",
        "ece",
        "my_own",
    ]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.5, "%", "50.0 %"),
        (-0.034, "%", "-3.4 %"),
        (0.0123, "points", "1.23"),
        (0.69314, "nats", "0.6931"),
        (1.5, "", "1.5000"),
        (float("nan"), "points", "not defined"),
        (None, "%", "–"),
    ],
)
def test_numbers_are_shown_in_their_unit(value, unit, text):
    assert format_described_metric_value(value, unit) == text


@pytest.mark.parametrize("probability", [0.0, 1.0, 1e-12, 1 - 1e-12])
def test_a_probability_near_0_or_1_is_shown_as_a_bound(probability):
    assert format_described_probability(probability) in ("< 0.1 %", "> 99.9 %")
