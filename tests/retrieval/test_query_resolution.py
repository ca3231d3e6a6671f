"""Labels of a query as columns."""

import pytest

from surelabel.errors import InputError, UnknownName
from surelabel.retrieval.formula import literals_of_formula
from surelabel.retrieval.query import parse
from surelabel.retrieval.query_resolution import (
    LabelBound,
    resolve_label_query,
    resolve_query,
)

NAMES = ["apple", "knife", "fork", "hot dog", "coffee", "black and white", 'a "b"', "café"]


def columns_and_signs(query, names):
    return [tuple(literal) for literal in literals_of_formula(resolve_query(query, names).formula)]


def test_terms_become_columns_with_signs():
    assert columns_and_signs(parse("fork & apple & !knife"), NAMES) == [(2, 1), (0, 1), (1, -1)]


def test_another_unicode_form_of_the_same_letters_is_the_same_label():
    assert columns_and_signs(parse("cafe\u0301"), NAMES) == [(NAMES.index("café"), 1)]
    assert columns_and_signs(parse("café"), ["cafe\u0301"]) == [(0, 1)]
    with pytest.raises(InputError, match="are the same label"):
        columns_and_signs(parse("café & !cafe\u0301"), NAMES)


@pytest.mark.parametrize("mark", list("\u200e\u200f\u202a\u202e\u2066\u2069"))
def test_a_label_is_found_without_its_marks_of_the_writing_direction(mark):
    name = f"{mark}מכונית{mark}"
    assert columns_and_signs(parse("!מכונית"), [*NAMES, name]) == [(len(NAMES), -1)]
    assert columns_and_signs(parse(f"cafe\u0301{mark}"), NAMES) == [(NAMES.index("café"), 1)]
    with pytest.raises(InputError, match="are the same label"):
        columns_and_signs(parse(f"מכונית & {name}"), [name])


def test_marks_of_the_writing_direction_are_part_of_a_label_that_is_ambiguous_without_them():
    names = ["dog\u200f", "\u200edog"]
    assert columns_and_signs(parse("\u200edog"), names) == [(1, 1)]
    with pytest.raises(UnknownName, match=r"Did you mean '\\u200edog' or 'dog\\u200f'\?"):
        columns_and_signs(parse("dog"), names)


def test_a_label_is_found_in_another_case_if_only_one_matches():
    assert columns_and_signs(parse("DOG & !fork"), ["Fork", "dog"]) == [(1, 1), (0, -1)]
    assert columns_and_signs(parse("Polish"), ["polish", "Polish"]) == [(1, 1)]
    with pytest.raises(UnknownName, match="'POLISH' is not in the index"):
        columns_and_signs(parse("POLISH"), ["polish", "Polish"])


def test_labels_with_commas_are_quoted_in_the_list_of_labels():
    with pytest.raises(UnknownName, match=r"The index has 2 labels, such as 'salt, pepper', dog\."):
        columns_and_signs(parse("x"), ["salt, pepper", "dog"])


def test_an_unknown_label_is_answered_with_the_nearest():
    with pytest.raises(
        UnknownName, match=r"Label 'aple' is not in the index\. Did you mean 'apple'\?"
    ):
        columns_and_signs(parse("aple"), NAMES)
    with pytest.raises(UnknownName, match=r"Label 'fork apple' is not in the index.*Write &"):
        columns_and_signs(parse("fork apple"), NAMES)


def test_a_label_that_must_be_quoted_is_suggested_with_its_quotes():
    with pytest.raises(UnknownName, match=r'Did you mean "sunset \(red\)"\?'):
        resolve_query(parse("sunset"), ["sunset (red)", "dog"])
    with pytest.raises(UnknownName, match=r'Did you mean "a\|b"\?'):
        resolve_query(parse("a|b"), ["a|b", "c"])


def test_sentences_have_the_columns_after_the_labels_and_thresholds_have_columns():
    query = resolve_query(parse('~"two dogs" & FORK>0.5 & !~"snow" & coffee<0.25'), NAMES)
    assert query.sentences == ("two dogs", "snow")
    assert query.titles == {8: '~"two dogs"', 2: "fork", 9: '~"snow"'}
    assert query.filters == (LabelBound(2, 0.5, True), LabelBound(4, 0.25, False))
    assert query.columns == [8, 2, 9, 4]


@pytest.mark.parametrize("term", ['~"two dogs"', "path:a/*", "width>3", "fork>0.5", "like:a.jpg"])
def test_a_query_of_labels_has_nothing_else(term):
    with pytest.raises(InputError, match=r"must contain only labels; got .*\. Remove"):
        resolve_label_query(parse(f"fork & {term}"), NAMES)
    assert resolve_label_query(parse("fork | !apple"), NAMES).columns == [2, 0]


def test_a_label_that_is_written_like_a_sentence_is_not_confused_with_it():
    with pytest.raises(InputError, match="are the same label"):
        resolve_query(parse('"~""s""" & ~"s"'), ['~"s"', "b"])
