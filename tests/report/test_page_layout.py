from surelabel.markup import Markup, markup_element
from surelabel.report.page_layout import render_page_layout, render_page_section


def test_empty_sections_have_no_link_and_texts_are_escaped():
    sections = {
        ("first", "First <one>"): render_page_section("first", "Title", "a < b"),
        ("second", "Second"): Markup(""),
    }
    page = render_page_layout("A & B", markup_element("p", "header"), sections)
    assert page.startswith("<!doctype html>")
    assert '<a href="#first">First &lt;one&gt;</a>' in page
    assert "a &lt; b" in page
    assert "#second" not in page
    assert "<title>A &amp; B</title>" in page
    assert "Content-Security-Policy" in page
