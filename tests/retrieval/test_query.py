"""The query language."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from surelabel.errors import InputError, SurelabelError, UnknownName
from surelabel.retrieval.query import MAX_QUERY_LENGTH, Query, parse, query_to_columns

NAMES = ["apple", "knife", "fork", "hot dog", "coffee", "black and white", 'a "b"', "café"]
PIECES = st.sampled_from(["&", "!", '"', '""', " ", "and", "NOT", "dog", "hot dog", "é", "\n", "-"])


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("fork", ("fork",), ()),
        ("fork & apple & !knife", ("fork", "apple"), ("knife",)),
        ("fork&apple&!knife", ("fork", "apple"), ("knife",)),
        ("fork and apple AND NOT knife", ("fork", "apple"), ("knife",)),
        ("not knife", (), ("knife",)),
        ("! knife", (), ("knife",)),
        ("hot   dog & !coffee", ("hot dog",), ("coffee",)),
        ('"black and white" & !"12"" record"', ("black and white",), ('12" record',)),
        ("sand & land", ("sand", "land"), ()),
        ("t-shirt & chef's knife", ("t-shirt", "chef's knife"), ()),
        ("fork & fork & !knife & !knife", ("fork",), ("knife",)),
        ('"  two  spaces "', ("  two  spaces ",), ()),
        ("猫 & !собака & 🍎", ("猫", "🍎"), ("собака",)),
    ],
)
def test_a_query_is_read_as_it_is_meant(text, wanted, unwanted):
    assert parse(text) == Query(wanted, unwanted)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one label"),
        (" \n ", "at least one label"),
        ("&", "need a label name"),
        ("fork &", "need a label name"),
        ("& fork", "need a label name"),
        ("fork & & apple", "need a label name"),
        ("fork and", "need a label name"),
        ("!", "need a label name"),
        ("!!fork", "must occur once"),
        ("fork !knife", "must occur once"),
        ('fork "knife"', "must be separated by &"),
        ('fork & "knife', "quote at character 8"),
        ('"""', "closing one"),
        ('""', "empty pair of quotes"),
        ("fork & !fork", "'fork' is both"),
        ("x" * (MAX_QUERY_LENGTH + 1), "at most 10,000 characters; got 10,001"),
    ],
)
def test_a_broken_query_says_what_is_wrong(text, message):
    with pytest.raises(InputError, match=message):
        parse(text)


names = st.text(min_size=1) | st.lists(PIECES, min_size=1).map("".join) | st.sampled_from(NAMES)


@given(st.lists(names, min_size=1, max_size=6, unique=True), st.integers(0, 6))
@example(["and", "NOT", '"', "!", "&", " "], 3)
def test_every_query_is_written_so_that_it_is_read_back(terms, wanted):
    query = Query(tuple(terms[:wanted]), tuple(terms[wanted:]))
    assert parse(str(query)) == query


@given(st.lists(PIECES, max_size=40).map("".join) | st.text())
def test_any_text_is_a_query_or_one_of_our_errors(text):
    try:
        query = parse(text)
    except InputError:
        return
    assert parse(str(query)) == query


@pytest.mark.parametrize("piece", ['"', '""', "!", "& ", "a ", "a&", '"a" ', "not "])
def test_hostile_text_costs_no_more_than_its_length(piece):
    text = (piece * MAX_QUERY_LENGTH)[:MAX_QUERY_LENGTH]
    start = time.process_time()
    with pytest.raises(SurelabelError, match=r"^.{20,1000}$"):
        query_to_columns(parse(text), NAMES)
    assert time.process_time() - start < 1.0


def test_a_query_cannot_be_made_wrong_by_hand():
    with pytest.raises(InputError, match="must be distinct"):
        Query(("fork", "fork"))
    with pytest.raises(InputError, match="got an empty name"):
        Query(("",))


def test_terms_become_columns_with_signs():
    assert query_to_columns(parse("fork & apple & !knife"), NAMES) == [(2, 1), (0, 1), (1, -1)]


def test_another_unicode_form_of_the_same_letters_is_the_same_label():
    assert query_to_columns(parse("cafe\u0301"), NAMES) == [(NAMES.index("café"), 1)]
    assert query_to_columns(parse("café"), ["cafe\u0301"]) == [(0, 1)]
    with pytest.raises(InputError, match="are the same label"):
        query_to_columns(parse("café & !cafe\u0301"), NAMES)


@pytest.mark.parametrize("mark", list("\u200e\u200f\u202a\u202e\u2066\u2069"))
def test_a_label_is_found_without_its_marks_of_the_writing_direction(mark):
    name = f"{mark}מכונית{mark}"
    assert query_to_columns(parse("!מכונית"), [*NAMES, name]) == [(len(NAMES), -1)]
    assert query_to_columns(parse(f"cafe\u0301{mark}"), NAMES) == [(NAMES.index("café"), 1)]
    with pytest.raises(InputError, match="are the same label"):
        query_to_columns(parse(f"מכונית & {name}"), [name])


def test_marks_of_the_writing_direction_are_part_of_a_label_that_is_ambiguous_without_them():
    names = ["dog\u200f", "\u200edog"]
    assert query_to_columns(parse("\u200edog"), names) == [(1, 1)]
    with pytest.raises(UnknownName, match=r"Did you mean '\\u200edog' or 'dog\\u200f'\?"):
        query_to_columns(parse("dog"), names)


def test_a_label_is_found_in_another_case_if_only_one_matches():
    assert query_to_columns(parse("DOG & !fork"), ["Fork", "dog"]) == [(1, 1), (0, -1)]
    assert query_to_columns(parse("Polish"), ["polish", "Polish"]) == [(1, 1)]
    with pytest.raises(UnknownName, match="'POLISH' is not in the index"):
        query_to_columns(parse("POLISH"), ["polish", "Polish"])


def test_labels_with_commas_are_quoted_in_the_list_of_labels():
    with pytest.raises(UnknownName, match=r"There are 2 labels, such as 'salt, pepper', dog\."):
        query_to_columns(parse("x"), ["salt, pepper", "dog"])


def test_an_unknown_label_is_answered_with_the_nearest():
    with pytest.raises(
        UnknownName, match=r"Label 'aple' is not in the index\. Did you mean 'apple'\?"
    ):
        query_to_columns(parse("aple"), NAMES)
    with pytest.raises(UnknownName, match=r"Label 'fork apple' is not in the index.*Write &"):
        query_to_columns(parse("fork apple"), NAMES)
