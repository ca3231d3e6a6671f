"""Construct HTML with automatic escaping of plain text."""

from collections.abc import Iterable, Sequence
from html import escape

VOID_ELEMENTS = frozenset({"img", "meta"})  # elements without content


class Markup(str):
    """String that already is HTML and is not escaped; any other string is escaped."""

    __slots__ = ()


def html_element(tag: str, *children: str, **attributes: str | None) -> Markup:
    """Return one HTML element.

    Args:
        tag: Tag name, such as ``td``.
        children: Content of the element; plain strings are escaped, ``Markup`` is not.
        attributes: Attributes of the element, always escaped. ``class_`` stands for ``class``,
            ``aria_label`` for ``aria-label``; None omits the attribute.

    Example:
        >>> html_element("b", "fish & chips", title='"quoted"', class_=None)
        '<b title="&quot;quoted&quot;">fish &amp; chips</b>'
    """
    attribute_text = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    start_tag = f"<{tag}{attribute_text}>"
    if tag in VOID_ELEMENTS:
        return Markup(start_tag)
    return Markup(f"{start_tag}{join_markup(*children)}</{tag}>")


def join_markup(*parts: str) -> Markup:
    """Concatenate HTML fragments and escape the plain strings among them.

    Example:
        >>> join_markup("1 < 2", html_element("i", "yes"))
        '1 &lt; 2<i>yes</i>'
    """
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def table_region(
    label: str, header: Sequence[Markup], rows: Sequence[Markup], *, class_: str = "wide"
) -> Markup:
    """Return a table inside a scrollable region.

    Args:
        label: Accessible name of the region.
        header: Header cells, ``th`` elements.
        rows: Body rows, ``tr`` elements.
        class_: CSS class of the region.
    """
    table = html_element(
        "table", html_element("thead", html_element("tr", *header)), html_element("tbody", *rows)
    )
    return html_element("div", table, class_=class_, role="region", aria_label=label, tabindex="0")


def header_cells(titles: Iterable[str]) -> list[Markup]:
    """Return one column header cell for each title."""
    return [html_element("th", title, scope="col") for title in titles]
