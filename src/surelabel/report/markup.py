"""HTML that is safe by default: plain text is escaped wherever it is put."""

from html import escape

VOID = frozenset({"img", "meta"})  # elements without content


class Markup(str):
    """Text that is HTML already. Any other string is escaped before it enters a page."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | None) -> Markup:
    """One HTML element.

    Args:
        tag: Its name.
        children: What it holds; plain strings are escaped.
        attributes: Always escaped; ``class_`` means ``class``, ``aria_label`` means
            ``aria-label``, None leaves one out.

    Example:
        >>> element("b", "fish & chips", title='"quoted"', class_=None)
        '<b title="&quot;quoted&quot;">fish &amp; chips</b>'
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    opening = f"<{tag}{given}>"
    return Markup(opening if tag in VOID else f"{opening}{joined(*children)}</{tag}>")


def joined(*parts: str) -> Markup:
    """Several pieces in a row, plain strings escaped.

    Example:
        >>> joined("1 < 2", element("i", "yes"))
        '1 &lt; 2<i>yes</i>'
    """
    return Markup("".join(p if isinstance(p, Markup) else escape(p) for p in parts))
