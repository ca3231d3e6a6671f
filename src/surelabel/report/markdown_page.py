"""Convert an HTML page of a report to Markdown, so that each section is written once."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

from surelabel.markup import VOID_ELEMENTS

HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
BLOCKS = {*HEADINGS, "p", "div", "section", "header", "main", "ul", "table", "figure", "details"}
BLOCKS |= {"body", "html", "figcaption", "summary", "img"}
SKIPPED = {"head", "nav", "footer"}
BOLD = {"b", "strong", "summary"}
SPECIAL = re.compile(r"([\\`*_\[\]<>|#~]|&(?=#?\w+;))")  # & of a character reference
LINE_START = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=])(?=\s|$|[-=])")
LINE_BREAK = "<br>"  # in a cell of a table


@dataclass
class PageElement:
    """Element of an HTML page.

    Attributes:
        tag: Tag name, such as ``td``.
        attributes: Attributes of the element.
        children: Elements and texts of the content.
    """

    tag: str
    attributes: dict[str, str | None]
    children: "list[PageElement | str]" = field(default_factory=list)


def markdown_of_page(page: str) -> str:
    """Return the content of an HTML page of a report as Markdown with tables.

    Headings, paragraphs, lists, tables and plots are converted. A plot becomes a link to its file,
    which is the attribute ``data-file`` of its ``img``. Elements with the attribute ``data-only``,
    the head, the navigation, the footer and other images, which have no file, are left out.

    Args:
        page: HTML page of :func:`render_page_layout`.

    Example:
        >>> print(markdown_of_page("<h2>Labels</h2><p><b>3</b> of 4 * 2</p>"), end="")
        ## Labels
        <BLANKLINE>
        **3** of 4 \\* 2
    """
    parser = _PageParser()
    parser.feed(page)
    parser.close()
    return "\n\n".join(_blocks(parser.root)) + "\n"


class _PageParser(HTMLParser):
    """Parser that builds the tree of elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.root = PageElement("html", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = PageElement(tag, dict(attrs))
        self._open[-1].children.append(element)
        if tag not in VOID_ELEMENTS:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if self._open[-1].tag == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def _blocks(element: PageElement) -> list[str]:
    """Return the blocks of Markdown of the content of an element."""
    blocks: list[str] = []
    inline: list[PageElement | str] = []
    for child in element.children:
        if isinstance(child, PageElement) and _is_left_out(child):
            continue
        if isinstance(child, PageElement) and child.tag in BLOCKS:
            blocks += [*_paragraph(inline), *_block(child)]
            inline = []
        else:
            inline.append(child)
    return [*blocks, *_paragraph(inline)]


def _is_left_out(element: PageElement) -> bool:
    is_image = element.tag == "img" and "data-file" not in element.attributes
    return element.tag in SKIPPED or "data-only" in element.attributes or is_image


def _block(element: PageElement) -> list[str]:
    """Return the blocks of Markdown of an element, including the element."""
    if element.tag in HEADINGS:
        return [f"{HEADINGS[element.tag]} {_inline(element.children)}"]
    if element.tag == "table":
        return _table(element)
    if element.tag == "ul":
        items = [_inline(item.children) for item in _descendants(element, "li")]
        return ["\n".join(f"- {item}" for item in items if item)] if any(items) else []
    if element.tag in ("summary", "img"):
        return _paragraph([element])
    return _blocks(element)


def _paragraph(children: Sequence[PageElement | str]) -> list[str]:
    text = _inline(children)
    return [LINE_START.sub(_escape_line_start, text)] if text else []


def _escape_line_start(match: re.Match[str]) -> str:
    """Escape a number or a sign that would start a list or a heading."""
    return f"{match[1]}\\{match[2]}" if match[1] else f"\\{match[3]}"


def _table(table: PageElement) -> list[str]:
    """Return a table, with an empty header if the columns have no header cells."""
    rows = [
        [_cell(cell) for cell in row.children if isinstance(cell, PageElement)]
        for row in _descendants(table, "tr")
    ]
    if not rows:
        return []
    if not any(_descendants(table, "thead")):
        rows.insert(0, [""] * len(rows[0]))
    rule = ["---"] * len(rows[0])
    return ["\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))]


def _cell(cell: PageElement) -> str:
    """Return the blocks of a cell on one line, with an escaped ``|`` in code spans."""
    return re.sub(r"(?<!\\)\|", r"\\|", LINE_BREAK.join(_blocks(cell)))


def _inline(children: Sequence[PageElement | str]) -> str:
    """Return the text of inline elements on one line."""
    return " ".join(_inline_text(children).split())


def _inline_text(children: Sequence[PageElement | str]) -> str:
    """Return the text of inline elements, with a space between two elements."""
    text, after_element = "", False
    for child in children:
        if isinstance(child, str):
            text, after_element = text + SPECIAL.sub(r"\\\1", child), False
        elif not _is_left_out(child):
            text, after_element = text + " " * after_element + _inline_element(child), True
    return text


def _inline_element(element: PageElement) -> str:
    if element.tag == "img":
        alt = " ".join(SPECIAL.sub(r"\\\1", element.attributes.get("alt") or "").split())
        return f"![{alt}]({element.attributes['data-file']})"
    if element.tag == "code":
        return _code("".join(child for child in element.children if isinstance(child, str)))
    text = _inline_text(element.children)
    return (
        re.sub(r"\S.*\S|\S", r"**\g<0>**", text, count=1, flags=re.DOTALL)
        if element.tag in BOLD
        else text
    )


def _code(text: str) -> str:
    """Return a code span, whose fence is longer than each run of backticks in the text."""
    if not text.strip():
        return ""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if longest else ""
    return f"{fence}{padding}{' '.join(text.split())}{padding}{fence}"


def _descendants(element: PageElement, tag: str) -> Iterator[PageElement]:
    """Yield the elements with a tag in the content of an element, in the order of the page."""
    for child in element.children:
        if isinstance(child, PageElement):
            if child.tag == tag:
                yield child
            yield from _descendants(child, tag)
