import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.label_aliases import (
    LiteralLabel,
    comparable_spelling,
    join_label_aliases,
    list_labels,
    remove_direction_marks,
    split_label_aliases,
)

SPELLINGS = st.text("ab|\\, ", min_size=1, max_size=6).map(str.strip).filter(bool)


@given(st.lists(SPELLINGS, min_size=1, max_size=4))
def test_spellings_with_any_character_survive_joining(spellings):
    assert split_label_aliases(join_label_aliases(spellings)) == tuple(spellings)


@pytest.mark.parametrize(
    ("label", "spellings"),
    [
        ("sofa", ("sofa",)),
        ("sofa|couch | settee", ("sofa", "couch", "settee")),
        (r"either\|or|both", ("either|or", "both")),
        (r"a\\|b", ("a\\", "b")),
        (r"C:\photos\new", (r"C:\photos\new",)),
        ("sofa|", ("sofa", "")),
        (LiteralLabel(r" either|or\|"), (r"either|or\|",)),
    ],
)
def test_a_backslash_makes_a_bar_a_character(label, spellings):
    assert split_label_aliases(label) == spellings


def test_a_literal_label_equals_its_text():
    label = LiteralLabel("either|or")
    assert (label, {label: 1}["either|or"]) == ("either|or", 1)
    assert join_label_aliases([label]) == r"either\|or"


def test_only_marks_of_the_writing_direction_are_removed():
    marks = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    assert remove_direction_marks(f"{marks}Dog{marks}") == "Dog"
    assert comparable_spelling(f"{marks}Dog") == "dog"
    assert remove_direction_marks("👩\u200d🚀") == "👩\u200d🚀"


def test_a_list_of_labels_quotes_those_with_a_comma():
    assert list_labels(["dog", "salt, pepper", "cat|kitten"]) == "dog, 'salt, pepper', cat|kitten"
