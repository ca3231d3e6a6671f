import pytest

from surelabel.retrieval import parse
from surelabel.retrieval.query_terms import LabelTerm, quote_label, quote_path

QUERIES = [
    "lion",
    "hot dog & !coffee",
    'fork AND NOT "salt and pepper"',
    "a & !(b | !c)",
    "!(a & b) | c",
    "!!a & b",
    'dog>0.8 & cat & path:"my photos/*" & date>=2024-05',
    'like:"a b.jpg"#20 & ~"two ducks" & duck',
    '"a ""quoted"" label" & x',
    "my date & width>100 & x <b",
    "a-b & c,d & é",
]
LABELS = [
    "lion",
    "salt and pepper",
    "sunset (red)",
    'a "b"',
    "not",
    "date",
    "<3",
    " a",
    "a: b",
    "x",
]


@pytest.fixture(scope="module")
def language(chromium, scene_server):
    """Return a function that calls a function of the script of the query language."""
    page = chromium.new_page()
    page.goto(f"{scene_server.url}/login")

    def call(name, *values):
        script = """([name, values]) => import("/static/query_language.js")
            .then((language) => language[name](...values))"""
        return page.evaluate(script, [name, list(values)])

    yield call
    page.close()


def test_labels_and_their_signs_are_those_of_the_parser(language):
    for text in QUERIES:
        expected = {
            (term.name, sign)
            for term, sign in parse(text).signed_terms
            if isinstance(term, LabelTerm)
        }
        labels = language("queryLabels", text)["labels"]
        assert {(label["name"], label["sign"]) for label in labels} == expected, text


def test_labels_and_paths_are_quoted_as_by_the_library(language):
    assert [language("quoteLabel", label) for label in LABELS] == [*map(quote_label, LABELS)]
    paths = ["a.jpg", "my photo.jpg", 'a"b.jpg', "a&b (1).jpg"]
    assert [language("quotePath", path) for path in paths] == [*map(quote_path, paths)]


@pytest.mark.parametrize(
    ("text", "label", "sign", "expected"),
    [
        ("", "lion", 1, "lion"),
        ("lion", "guitar", -1, "lion & !guitar"),
        ("lion & !guitar", "guitar", 1, "lion & guitar"),
        ("lion & !guitar", "lion", 0, "!guitar"),
        ("lion", "sunset (red)", 1, 'lion & "sunset (red)"'),
        ("a | b", "c", -1, "(a | b) & !c"),
        ("(a | b) & !c", "c", 0, "(a | b)"),
        ("(a | b) & !c", "a", 0, "(a | b) & !c"),
        ("path:x/* & a", "a", -1, "path:x/* & !a"),
        ("dog>0.8", "cat", 1, "dog>0.8 & cat"),
    ],
)
def test_a_label_changes_its_sign_in_a_query(language, text, label, sign, expected):
    changed = language("withLabel", text, label, sign)
    assert changed == expected
    assert str(parse(changed)) is not None


@pytest.mark.parametrize(
    ("text", "cursor", "expected"),
    [
        ("li", 2, ("li", 0, 2)),
        ("lion & !gui", 11, ("gui", 8, 11)),
        ("hot do", 6, ("hot do", 0, 6)),
        ('lion & "sun', 11, ("sun", 7, 11)),
        ('~"a li', 6, None),
        ("lion & ", 7, None),
        ("dog>0.8", 7, None),
        ("path:li", 7, None),
    ],
)
def test_the_label_at_the_cursor_is_completed(language, text, cursor, expected):
    fragment = language("labelAtCursor", text, cursor)
    found = fragment and (fragment["prefix"], fragment["start"], fragment["end"])
    assert found == expected
