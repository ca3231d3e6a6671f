"""The query language."""

import pickle
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from surelabel.errors import InputError, QuerySyntaxError, SurelabelError
from surelabel.retrieval.formula import (
    Conjunction,
    Disjunction,
    FilterLiteral,
    LabelLiteral,
    make_conjunction,
    make_disjunction,
    negate_formula,
)
from surelabel.retrieval.query import MAX_QUERY_LENGTH, Query, parse
from surelabel.retrieval.query_resolution import resolve_query
from surelabel.retrieval.query_terms import (
    FileFilter,
    LabelTerm,
    LabelThreshold,
    LikeTerm,
    PathFilter,
    SentenceTerm,
)

NAMES = ["apple", "knife", "fork", "hot dog", "coffee", "black and white", 'a "b"', "café"]
MANY_TERMS = " | ".join(f"(a & {x} & !{y})" for x in "bcdefgh" for y in "ijkl")
MANY_TERMS += (
    " | (b & !c & d & !e & f & !g & h & !i) | (!b & c & !d & e & !f & g & !h & i) | a & !k"
)
PIECES = st.sampled_from(
    [
        "&",
        "!",
        "|",
        "(",
        ")",
        "~",
        ">0.5",
        "path:",
        "like:",
        "date>",
        "2024",
        '"',
        '""',
        " ",
        "and",
        "NOT",
        "dog",
        "hot dog",
        "é",
        "\n",
        "-",
    ]
)


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
    signed = [(term.name, sign) for term, sign in parse(text).signed_terms]
    assert signed == [(name, 1) for name in wanted] + [(name, -1) for name in unwanted]
    assert isinstance(parse(text).formula, Conjunction | LabelLiteral)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one term"),
        (" \n ", "at least one term"),
        ("&", r"another term is expected here; got & \(character 1\)"),
        ("fork &", r"the query ends \(character 7\)"),
        ("fork & & apple", r"got & \(character 8\)"),
        ("fork and", "the query ends"),
        ("!", "the query ends"),
        ("a | | b", r"got \| \(character 5\)"),
        ("fork !knife", "the operator is missing"),
        ('fork "knife"', "the operator is missing"),
        ('fork & "knife', r"no closing quote \(character 8\)"),
        ('"""', "closing quote"),
        ('""', "got no text"),
        ("(a & b", r"This \( has no matching \) after it \(character 1\)"),
        ("a & b)", r"This \) has no matching \( before it \(character 6\)"),
        ("()", r"got \) \(character 2\)"),
        ("(" * 51 + "a" + ")" * 51, "at most 50 nested levels"),
        ("!" * 51 + "a", "at most 50 nested levels"),
        ("sunset (red) & a", r'in quotes: "sunset \(red\)"'),
        ("note: x", r'in quotes: "note: x"'),
        ("a ~ b", r'in quotes: "a ~ b"'),
        ("a > b", r'probability from 0 to 1.*in quotes: "a > b"'),
        ("dog>1.5", r"probability from 0 to 1 \(character 5\)"),
        ("dog>nan", "probability from 0 to 1"),
        ("!dog>0.8", r"got ! with dog>0.8 \(character 2\)\. Write dog<0.8 without !"),
        ("!(a | dog<0.8)", r"Write dog>0.8 without !"),
        ("~dog", "~ must be followed by a sentence"),
        ('~"  "', "~ must be followed by a sentence"),
        ("date>=2024-13-01", "date must exist"),
        ("date>=0000-01-01", "date must exist"),
        ("date>=99999", "must have the form"),
        ("date>", "must have the form"),
        ("width>2.5", "whole number of pixels"),
        ("height>=-1", "whole number of pixels"),
        ("path:", "path: must be followed directly"),
        ("path: x", "path: must be followed directly"),
        ('path:""', "path: must be followed by text"),
        ("like:#3", "like: needs a path"),
        ("like:a#0", ">= 1; got '0'"),
        ("like:a#x", ">= 1; got 'x'"),
        ("like:a | b", "restricts the whole search"),
        ("(like:a)", "restricts the whole search"),
        ("!like:a", "restricts the whole search"),
        ("like:a & like:b", r"at most one like: term; got two \(character 10\)"),
        (" & ".join(f"path:{i}" for i in range(13)), "at most 12 filters; got 13"),
        (" & ".join("abcdefghijkl") + " & (a | m)", "at most 12 labels; got 13"),
        (MANY_TERMS, "at most 100 terms; got 102"),
        (" | ".join(f'~"{i}"' for i in range(13)), "at most 12 sentences; got 13"),
        ("x" * (MAX_QUERY_LENGTH + 1), "at most 10,000 characters; got 10,001"),
    ],
)
def test_a_broken_query_says_what_is_wrong(text, message):
    with pytest.raises(InputError, match=message):
        parse(text)


def test_an_error_points_at_the_character():
    with pytest.raises(QuerySyntaxError, match="character 8") as caught:
        parse("fork &\n& " + "apple " * 30)
    assert str(caught.value).splitlines()[1:] == [
        "  " + ("fork & & " + "apple " * 30)[:47],
        "         ^",
    ]
    with pytest.raises(QuerySyntaxError, match="character 183") as caught:
        parse("apple " * 30 + "& )")
    excerpt, mark = str(caught.value).splitlines()[1:]
    assert excerpt[mark.index("^")] == ")"
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (str(copied), copied.position) == (str(caught.value), 182)


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("a | b & c", "a | (b & c)"),
        ("!a & b", "(!a) & b"),
        ("!(a | b)", "!a & !b"),
        ("!(a & !b)", "!a | b"),
        ("!!a", "a"),
        ("not not a", "a"),
        ("((a))", "a"),
        ("(a & b) & (c & a)", "a & b & c"),
        ("a or b", '"a or b"'),
        ("(a|b)&c", "(a | b) & c"),
    ],
)
def test_operators_bind_in_the_usual_order(text, formula):
    assert parse(text) == parse(formula)


@pytest.mark.parametrize(
    "text",
    [
        '"width">0.8',
        '"birth date">0.5',
        'width>1 & "width"',
        '"my date=5"',
        "path:dog>0.5 & path:dog",
        "path:dog>0.5 & dog",
        "(dog>0.8 | x) & y",
    ],
)
def test_a_query_is_written_as_it_was_read(text):
    assert str(parse(text)) == text


def test_a_label_can_be_wanted_and_unwanted():
    assert parse("a & !a").formula == Conjunction((LabelLiteral(0, 1), LabelLiteral(0, -1)))


def test_terms_and_filters_are_read():
    query = parse('dog>0.8 & path:a/*.JPG & !date<=2024-05 | ~"two ""dogs""" & cat < .5')
    assert query.terms == (LabelTerm("dog"), SentenceTerm('two "dogs"'))
    assert query.filters == (
        LabelThreshold("dog", 0.8, True),
        PathFilter("a/*.JPG"),
        FileFilter("date", "<=", "2024-05"),
        LabelThreshold("cat", 0.5, False),
    )
    filters = [FilterLiteral(0), FilterLiteral(1), FilterLiteral(2, -1), FilterLiteral(3)]
    assert query.formula == Disjunction(
        (
            Conjunction((filters[0], LabelLiteral(0, 1), *filters[1:3])),
            Conjunction((LabelLiteral(1, 1), filters[3])),
        )
    )


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("like:a.jpg", LikeTerm("a.jpg", 1000)),
        ("like:a.jpg#50 & dog", LikeTerm("a.jpg", 50)),
        ('like:"my ""a"" #1.jpg"#7', LikeTerm('my "a" #1.jpg', 7)),
        ('dog & like:"#.jpg"', LikeTerm("#.jpg", 1000)),
    ],
)
def test_an_example_restricts_the_search(text, like):
    assert parse(text).like == like


def test_a_label_with_the_name_of_a_field_is_a_label_without_a_comparison():
    assert parse("date & width").terms == (LabelTerm("date"), LabelTerm("width"))
    assert parse('"width">0.5').filters == (LabelThreshold("width", 0.5, True),)
    assert parse("update<0.5").filters == (LabelThreshold("update", 0.5, False),)
    assert parse("a<b").terms == (LabelTerm("a<b"),)


names = st.text(min_size=1) | st.lists(PIECES, min_size=1).map("".join) | st.sampled_from(NAMES)


@given(st.lists(names, min_size=1, max_size=6, unique=True), st.integers(0, 6))
@example(["and", "NOT", '"', "!", "&", " "], 3)
def test_every_query_is_written_so_that_it_is_read_back(terms, wanted):
    query = Query.of_labels(terms[:wanted], terms[wanted:])
    assert parse(str(query)) == query


leaves = (
    st.sampled_from("abc").map(LabelTerm)
    | st.sampled_from(["two dogs", 'a "b"', "x|y"]).map(SentenceTerm)
    | st.builds(PathFilter, st.sampled_from(["a/*", "my b/?", "x(1).jpg", 'q"']))
    | st.builds(LabelThreshold, st.sampled_from("ab"), st.floats(0, 1), st.booleans())
    | st.builds(
        FileFilter,
        st.sampled_from(["width", "height"]),
        st.sampled_from(["<", "<=", "=", ">=", ">"]),
        st.integers(0, 10**9 - 1).map(str),
    )
)
trees = st.recursive(
    leaves.map(lambda leaf: ("leaf", leaf)),
    lambda inner: st.tuples(st.sampled_from(["and", "or", "not"]), st.lists(inner, min_size=1)),
    max_leaves=10,
)


def query_of_tree(tree, terms, filters, sign=1):
    """Formula of a random tree; a threshold is never negated, as in the language."""
    kind, content = tree
    if kind != "leaf":
        flipped = -sign if kind == "not" else sign
        parts = [query_of_tree(part, terms, filters, flipped) for part in content]
        make = make_disjunction if kind == "or" else make_conjunction
        return negate_formula(make(parts)) if kind == "not" else make(parts)
    if isinstance(content, LabelTerm | SentenceTerm):
        return LabelLiteral(terms.setdefault(content, len(terms)), 1)
    if isinstance(content, LabelThreshold) and sign < 0:
        content = PathFilter("other")
    literal = FilterLiteral(filters.setdefault(content, len(filters)))
    if not isinstance(content, LabelThreshold) or not content.is_minimum:
        return literal
    label = LabelLiteral(terms.setdefault(LabelTerm(content.name), len(terms)), 1)
    return Conjunction((literal, label))


def leaves_in_order(query, formula):
    """Formula with terms and filters instead of their numbers."""
    if isinstance(formula, LabelLiteral):
        return query.terms[formula.column], formula.sign
    if isinstance(formula, FilterLiteral):
        return query.filters[formula.number], formula.sign
    return type(formula).__name__, [leaves_in_order(query, term) for term in formula.terms]


@settings(max_examples=300, deadline=None)
@given(trees, st.none() | st.builds(LikeTerm, st.sampled_from(["a.jpg", "b #1"]), st.just(9)))
def test_every_formula_is_written_so_that_it_is_read_back(tree, like):
    terms, filters = {}, {}
    formula = query_of_tree(tree, terms, filters)
    query = Query(formula, tuple(terms), tuple(filters), like)
    read = parse(str(query))
    assert leaves_in_order(read, read.formula) == leaves_in_order(query, query.formula)
    assert read.like == query.like


@given(st.lists(PIECES, max_size=40).map("".join) | st.text())
def test_any_text_is_a_query_or_one_of_our_errors(text):
    try:
        query = parse(text)
    except InputError:
        return
    assert parse(str(query)) == query


@pytest.mark.parametrize(
    "piece",
    ['"', '""', "!", "& ", "a ", "a&", '"a" ', "not ", "(", "a|", "path:* ", "a<", "like:#", "(a|"],
)
def test_hostile_text_costs_no_more_than_its_length(piece):
    text = (piece * MAX_QUERY_LENGTH)[:MAX_QUERY_LENGTH]
    start = time.process_time()
    with pytest.raises(SurelabelError, match=r"^.{20,1000}"):
        resolve_query(parse(text), NAMES)
    assert time.process_time() - start < 1.0


def test_thousands_of_terms_are_read_in_less_than_a_second():
    start = time.process_time()
    for operator in "&|":
        query = parse(operator.join(map(str, range(1500))))
        assert len(query.terms) == 1500
        assert parse(str(query)) == query
    assert time.process_time() - start < 1.0


def test_a_query_cannot_be_made_wrong_by_hand():
    with pytest.raises(InputError, match="got an empty name"):
        Query.of_labels([""])
    with pytest.raises(InputError, match="at least one term"):
        Query.of_labels([])
