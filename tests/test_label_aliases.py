import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.label_aliases import LiteralLabel, join_label_aliases, split_label_aliases

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
