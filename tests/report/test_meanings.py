import pytest

from surelabel.metrics import POOLED
from surelabel.report.meanings import MEANINGS, chance, in_order, meaning_of, shown


@pytest.mark.parametrize("metric", POOLED)
def test_every_metric_is_explained(metric):
    meaning = meaning_of(metric)
    assert meaning.title
    assert meaning.unit in ("%", "points", "nats")
    assert meaning.better in ("higher", "lower")
    assert meaning.text.endswith(".")


def test_nothing_is_explained_that_does_not_exist():
    assert set(MEANINGS) <= set(POOLED)


def test_a_metric_without_words_is_shown_under_its_name():
    assert meaning_of("my_own").title == "my own"
    assert in_order(["my_own", "ece", "brier_skill"]) == ["brier_skill", "ece", "my_own"]


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
    assert shown(value, unit) == text


@pytest.mark.parametrize("probability", [0.0, 1.0, 1e-12, 1 - 1e-12])
def test_nothing_is_claimed_to_be_certain(probability):
    assert chance(probability) in ("< 0.1 %", "> 99.9 %")
