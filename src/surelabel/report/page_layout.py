"""Render the layout of report pages: head, sections with links, and cards of plots."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from surelabel.markup import Markup, markup_element
from surelabel.report.plot_style import Plot
from surelabel.report.thumbnails import thumbnail_or_plot_data_uri

CONTENT_SECURITY_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def render_page_layout(
    title: str, header: Markup, sections: Mapping[tuple[str, str], Markup]
) -> str:
    """Return an HTML page without scripts or external resources.

    Args:
        title: Title of the page.
        header: Description of the data, below the title.
        sections: Sections by anchor and short title of their link. Empty sections have no link. A
            page with one section has no links.
    """
    links = [
        markup_element("a", link, href=f"#{anchor}")
        for (anchor, link), section in sections.items()
        if section
    ]
    body = markup_element(
        "body",
        markup_element(
            "header",
            markup_element("h1", title),
            header,
            *([markup_element("nav", *links, aria_label="Sections")] if len(links) > 1 else []),
        ),
        markup_element("main", *sections.values()),
        markup_element("footer", "Written by Surelabel. This file has no external resources."),
    )
    return "<!doctype html>\n" + markup_element("html", _page_head(title), body, lang="en") + "\n"


def render_page_section(anchor: str, title: str, *children: str) -> Markup:
    """Return a section with a heading of level 2.

    Args:
        anchor: Identifier of the section, to which links refer.
        title: Text of the heading.
        children: HTML below the heading.
    """
    return markup_element("section", markup_element("h2", title), *children, id=anchor)


def render_page_plot_grid(plots: Sequence[Plot]) -> Markup:
    """Return cards of plots side by side."""
    return markup_element("div", *map(render_page_plot_card, plots), class_="plots")


def render_page_plot_card(plot: Plot) -> Markup:
    """Return a plot with its title and caption."""
    return markup_element(
        "figure",
        markup_element("strong", plot.title),
        markup_element(
            "img",
            src=thumbnail_or_plot_data_uri(plot.png, "png"),
            alt=plot.alt,
            data_file=plot.file,
        ),
        markup_element("figcaption", plot.caption),
        class_="card",
    )


def _page_head(title: str) -> Markup:
    style_sheet = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return markup_element(
        "head",
        markup_element("meta", charset="utf-8"),
        markup_element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        markup_element(
            "meta", http_equiv="Content-Security-Policy", content=CONTENT_SECURITY_POLICY
        ),
        markup_element("meta", name="generator", content="Surelabel"),
        markup_element("title", title),
        markup_element("style", Markup(style_sheet)),
    )
