"""The query language."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from surelabel.errors import InputError, SurelabelError, UnknownName
from surelabel.retrieval.query import LONGEST, Query, parse, resolve

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
        ("&", "stands a name"),
        ("fork &", "stands a name"),
        ("& fork", "stands a name"),
        ("fork & & apple", "stands a name"),
        ("fork and", "stands a name"),
        ("!", "stands a name"),
        ("!!fork", "stands once"),
        ("fork !knife", "stands once"),
        ('fork "knife"', "Between two names"),
        ('fork & "knife', "The one at character 8"),
        ('"""', "closing one"),
        ('""', "empty pair of quotes"),
        ("fork & !fork", "'fork' is both"),
        ("x" * (LONGEST + 1), "at most 10,000 characters. This one has 10,001"),
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
    text = (piece * LONGEST)[:LONGEST]
    start = time.process_time()
    with pytest.raises(SurelabelError, match=r"^.{20,1000}$"):
        resolve(parse(text), NAMES)
    assert time.process_time() - start < 1.0


def test_a_query_cannot_be_made_wrong_by_hand():
    with pytest.raises(InputError, match="names every label once"):
        Query(("fork", "fork"))
    with pytest.raises(InputError, match="One is empty"):
        Query(("",))


def test_terms_become_columns_with_signs():
    assert resolve(parse("fork & apple & !knife"), NAMES) == [(2, 1), (0, 1), (1, -1)]


def test_another_unicode_form_of_the_same_letters_is_the_same_label():
    assert resolve(parse("cafe\u0301"), NAMES) == [(NAMES.index("café"), 1)]
    assert resolve(parse("café"), ["cafe\u0301"]) == [(0, 1)]
    with pytest.raises(InputError, match="are one label"):
        resolve(parse("café & !cafe\u0301"), NAMES)


def test_an_unknown_label_is_answered_with_the_nearest():
    with pytest.raises(UnknownName, match=r"No label is called 'aple'\. Did you mean 'apple'\?"):
        resolve(parse("aple"), NAMES)
    with pytest.raises(UnknownName, match=r"No label is called 'fork apple'.*goes &"):
        resolve(parse("fork apple"), NAMES)
