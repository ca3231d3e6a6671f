from surelabel.markup import Markup, markup_element
from surelabel.report.page_layout import render_page_layout, render_page_section


def test_empty_sections_have_no_link_and_texts_are_escaped():
    sections = {
        ("first", "First <one>"): render_page_section("first", "Title", "a < b"),
        ("second", "Second"): Markup(""),
        ("third", "Third"): render_page_section("third", "Title"),
    }
    page = render_page_layout("A & B", markup_element("p", "header"), sections)
    assert page.startswith("<!doctype html>")
    assert '<a href="#first">First &lt;one&gt;</a>' in page
    assert "a &lt; b" in page
    assert "#second" not in page
    assert "<title>A &amp; B</title>" in page
    assert "Content-Security-Policy" in page


def test_a_page_with_one_section_has_no_links():
    sections = {("first", "First"): render_page_section("first", "Title")}
    assert "<nav" not in render_page_layout("A", Markup(""), sections)
