from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from surelabel.markup import (
    Markup,
    join_markup,
    markup_element,
    markup_header_cells,
    markup_table_region,
)


class Reader(HTMLParser):
    """What a browser would see: start tags with attributes, and the text."""

    def __init__(self, text):
        super().__init__()
        self.starts, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.starts.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


plain = st.text(st.characters(exclude_characters="\r\x00", exclude_categories=["Cs"]))


@given(plain, plain)
def test_any_text_comes_back_as_text_and_any_attribute_as_itself(text, value):
    seen = Reader(markup_element("p", text, title=value))
    assert seen.starts == [("p", {"title": value})]
    assert seen.text == text


def test_markup_inside_markup_is_escaped_once():
    assert markup_element("p", markup_element("b", "<&>")) == "<p><b>&lt;&amp;&gt;</b></p>"


def test_an_element_without_content_is_not_closed():
    assert markup_element("img", src="a.png", alt="") == '<img src="a.png" alt="">'


def test_names_that_python_reserves_or_lacks_can_be_attributes():
    assert markup_element("i", class_="x", aria_label="y") == '<i class="x" aria-label="y"></i>'


def test_a_table_has_a_head_only_with_header_cells():
    row = markup_element("tr", markup_element("td", "1"))
    with_head = Reader(markup_table_region("Numbers", markup_header_cells(["n"]), [row]))
    assert [tag for tag, _ in with_head.starts[1:5]] == ["table", "thead", "tr", "th"]
    without_head = Reader(markup_table_region("Numbers", [], [row]))
    assert [tag for tag, _ in without_head.starts[1:]] == ["table", "tbody", "tr", "td"]


def test_pieces_in_a_row_are_markup_that_is_not_escaped_again():
    both = join_markup("a < b", markup_element("b", "c"))
    assert isinstance(both, Markup)
    assert join_markup(both) == both
