"""Construct HTML with automatic escaping of plain text."""

from collections.abc import Iterable, Sequence
from html import escape

VOID_ELEMENTS = frozenset({"img", "meta"})  # elements without content


class Markup(str):
    """String of valid HTML, which the functions of this module do not escape."""

    __slots__ = ()


def markup_element(tag: str, *children: str, **attributes: str | None) -> Markup:
    """Return one HTML element.

    Args:
        tag: Tag name, such as ``td``.
        children: Content of the element. Plain strings are escaped, ``Markup`` is not escaped.
        attributes: Attributes of the element, always escaped. The keyword ``class_`` sets the
            attribute ``class``, and ``aria_label`` sets ``aria-label``. If a value is None, the
            attribute is omitted.

    Example:
        >>> markup_element("b", "fish & chips", title='"quoted"', class_=None)
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
        >>> join_markup("1 < 2", markup_element("i", "yes"))
        '1 &lt; 2<i>yes</i>'
    """
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def markup_table_region(
    label: str, header: Sequence[Markup], rows: Sequence[Markup], *, class_: str = "wide"
) -> Markup:
    """Return a table inside a scrollable region.

    Args:
        label: Accessible name of the region.
        header: Header cells, ``th`` elements. If empty, the table has no ``thead``.
        rows: Body rows, ``tr`` elements.
        class_: CSS class of the region.
    """
    head = [markup_element("thead", markup_element("tr", *header))] if header else []
    table = markup_element("table", *head, markup_element("tbody", *rows))
    return markup_element(
        "div", table, class_=class_, role="region", aria_label=label, tabindex="0"
    )


def markup_header_cells(titles: Iterable[str]) -> list[Markup]:
    """Return one column header cell for each title."""
    return [markup_element("th", title, scope="col") for title in titles]
