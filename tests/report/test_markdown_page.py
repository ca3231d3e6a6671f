import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from surelabel.markup import markup_element, markup_header_cells, markup_table_region
from surelabel.report import report
from surelabel.report.markdown_page import markdown_of_page
from surelabel.report.page_layout import (
    render_page_layout,
    render_page_plot_card,
    render_page_section,
)
from surelabel.report.plot_style import Plot

TEXTS = st.text("ab |*_`[]<>\\#~-+1.&!", max_size=12).map(lambda text: " ".join(text.split()))


class Contents(HTMLParser):
    """Texts of cells, headings and paragraphs of HTML, in the order of the page."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag in ("td", "th", "h2", "p", "li"):
            self.text = ""
        elif tag == "br":
            self.text += "\n"

    def handle_data(self, data):
        if self.text is not None:
            self.text += data

    def handle_endtag(self, tag):
        if tag in ("td", "th", "h2", "p", "li") and self.text is not None:
            self.found.append((tag, self.text.strip()))
            self.text = None


def rendered(page):
    """The HTML that another program makes of the Markdown of a page."""
    return MarkdownIt("commonmark").enable("table").render(markdown_of_page(page))


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), min_size=1, max_size=4), TEXTS)
def test_tables_and_paragraphs_have_the_same_texts_after_rendering(rows, text):
    body = [markup_element("tr", *(markup_element("td", cell) for cell in row)) for row in rows]
    table = markup_table_region("Labels", markup_header_cells(["one", "a|b"]), body)
    page = render_page_section("x", "T * _t_", markup_element("p", f"x{text}y"), table)
    expected = [("h2", "T * _t_"), ("p", f"x{text}y"), ("th", "one"), ("th", "a|b")]
    expected += [("td", cell) for row in rows for cell in row]
    assert Contents(rendered(page)).found == expected


@pytest.mark.parametrize("text", ["1. a", "- a", "+ a", "# a", "> a", "=== a", "--- a", "12) b"])
def test_a_paragraph_that_looks_like_another_block_stays_a_paragraph(text):
    assert Contents(rendered(markup_element("p", text))).found == [("p", text)]


@pytest.mark.parametrize("text", ["a|b", "a`b", "``", "a & b < c", "x\\"])
def test_code_keeps_its_text_in_and_out_of_tables(text):
    code = markup_element("code", text)
    row = markup_element("tr", markup_element("td", code))
    page = markup_element("p", code) + markup_table_region("t", markup_header_cells(["h"]), [row])
    assert Contents(rendered(page)).found == [("p", text), ("th", "h"), ("td", text)]


def test_a_text_that_looks_like_a_character_reference_keeps_its_characters():
    text = "R&B &lt;b&gt; &#91; &copy;"
    page = markdown_of_page(str(markup_element("p", text)))
    assert Contents(MarkdownIt("commonmark").render(page)).found == [("p", text)]


def test_blocks_of_a_cell_are_lines_and_inline_elements_are_apart():
    cell = markup_element("th", "mAP", markup_element("span", " in %"), markup_element("div", "d"))
    item = markup_element("li", markup_element("i", "✓"), markup_element("b", " 97 % "))
    page = markup_table_region("t", [], [markup_element("tr", cell)]) + markup_element("ul", item)
    assert markdown_of_page(page) == "|  |\n| --- |\n| mAP in %<br>d |\n\n- ✓ **97 %**\n"


def test_a_plot_is_a_link_to_its_file_and_other_images_are_left_out():
    plot = Plot("one", "Title", "what [it] shows", "How to read it.", b"png")
    thumbnail = markup_element("img", src="data:x", alt="a thumbnail")
    only_html = markup_element("p", "colours", data_only="html")
    section = render_page_section("a", "Plots", render_page_plot_card(plot), thumbnail, only_html)
    page = render_page_layout("Report", markup_element("p", "about"), {("a", "A"): section})
    assert markdown_of_page(page) == (
        "# Report\n\nabout\n\n## Plots\n\n**Title**\n\n"
        "![what \\[it\\] shows](plots/one.png)\n\nHow to read it.\n"
    )


def test_the_markdown_of_a_report_has_all_sections_tables_and_plots_of_the_page(whole, tmp_path):
    page = report(whole(), tmp_path / "report").read_text(encoding="utf-8")
    markdown = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert re.findall(r"^## (.*)$", markdown, re.MULTILINE) == titles
    files = re.findall(r"^!\[.*\]\((.*)\)$", markdown, re.MULTILINE)
    assert {tmp_path / "report" / file for file in files} == {
        *Path(tmp_path, "report", "plots").iterdir()
    }
    html = MarkdownIt("commonmark").enable("table").render(markdown)
    assert html.count("<tr>") == page.count("<tr>")
    assert "<script" not in html
    assert "data:" not in markdown
