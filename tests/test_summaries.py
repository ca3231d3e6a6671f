import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.summaries import (
    MAX_TEXT_LENGTH,
    Summary,
    format_summary_value,
    shorten_text,
)

any_text = st.text(st.characters())


@given(any_text)
def test_any_text_becomes_one_short_line_that_can_be_encoded(text):
    short = shorten_text(text)
    assert len(short) <= MAX_TEXT_LENGTH
    assert len(short.splitlines()) <= 1
    assert "\x1b" not in short
    short.encode("utf-8")


@pytest.mark.parametrize("text", ["", "süße 🍎", "👩\u200d🚀", "x" * MAX_TEXT_LENGTH])
def test_a_short_printable_text_is_unchanged(text):
    assert shorten_text(text) == text


@pytest.mark.parametrize("max_length", [2, 3, 10, 79, 80])
def test_start_and_end_of_a_long_text_remain(max_length):
    short = shorten_text("a" + 100 * "-" + "z", max_length=max_length)
    assert len(short) == max_length
    assert (short[0], short[-1]) == ("a" if max_length > 2 else "…", "z")


def test_properties_that_are_too_long_for_one_line_have_a_line_each():
    summary = Summary("Platt", {"first": "x" * 60, "second": "y" * 60})
    assert summary.as_text().splitlines() == [
        "Platt(",
        f"    first='{60 * 'x'}',",
        f"    second='{60 * 'y'}',",
        ")",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (80, "80"),
        (0.00012345, "0.0001234"),
        (np.float64(0.5), "0.5"),
        (float("nan"), "nan"),
        ("it's", '"it\'s"'),
        (np.zeros(0), "[]"),
        (np.array([0.123456, 2.0]), "[0.1235, 2]"),
        (np.array([1.0, np.nan] * 4), "<8 values from nan to nan>"),
        ([], "[]"),
        (["a", "b"], "<2 × str>"),
        (
            {str(i): i / 3 for i in range(7)},
            "{'0': 0, '1': 0.3333, '2': 0.6667, '3': 1, '4': 1.333, '5': 1.667, …}",
        ),
        ({}, "{}"),
    ],
)
def test_values_are_short(value, text):
    assert format_summary_value(value) == text


def test_an_object_with_a_long_repr_is_shortened():
    assert len(format_summary_value(slice("x" * 500))) == MAX_TEXT_LENGTH


def test_a_table_without_rows_has_no_lines():
    summary = Summary("Hits", {"images": 0}, ("image",))
    assert summary.as_text() == "Hits(images=0)"
    assert "<td>" in summary.as_markup()
    assert "image</th>" not in summary.as_markup().replace("images", "")


@given(any_text)
def test_html_contains_no_markup_of_the_data(text):
    page = Summary(text, {text: text}, (text,), [(text,)], 1).as_markup()
    plain = Summary("", {"": ""}, ("",), [("",)], 1).as_markup()
    assert page.count("<") == plain.count("<")
    assert page.count('"') == plain.count('"')
