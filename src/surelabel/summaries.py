"""Summarize objects as text for ``repr`` and as HTML for notebooks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from unicodedata import category

import numpy as np
import numpy.typing as npt

from surelabel.markup import Markup, markup_element, markup_header_cells, markup_table_region

MAX_TEXT_LENGTH = 80  # characters of a string in a summary
MAX_LINE_LENGTH = 100  # characters of the properties on one line
MAX_ITEMS = 6  # elements of an array or a mapping that are shown
UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, surrogates, line breaks


@dataclass(frozen=True)
class Summary:
    """Summary of an object: its class, its properties and the first rows of a table.

    Attributes:
        title: Name of the class.
        properties: Value of each property, by name: a string, a number, an array, a mapping, a
            sequence of objects, or an object with a short ``repr``.
        header: Title of each column of the table. If empty, there is no table.
        rows: First rows of the table, one text for each column.
        n_rows: Number of rows of the complete table.

    Example:
        >>> header, rows = ("label", "score"), [("fish & chips", "0.5")]
        >>> summary = Summary("Scores", {"model": "tiny-vit", "loss": 0.25}, header, rows, 9)
        >>> print(summary.as_text())
        Scores(model='tiny-vit', loss=0.25)
          label         score
          fish & chips  0.5
          … 8 more
        >>> "<td>fish &amp; chips</td>" in summary.as_markup()
        True
    """

    title: str
    properties: Mapping[str, object]
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    n_rows: int = 0

    def as_text(self) -> str:
        """Return the title with the properties, then the rows of the table, one on each line."""
        properties = [
            f"{name}={format_summary_value(value)}" for name, value in self.properties.items()
        ]
        line = f"{self.title}({', '.join(properties)})"
        if len(line) > MAX_LINE_LENGTH:
            line = f"{self.title}(\n    " + ",\n    ".join(properties) + ",\n)"
        return "\n".join([line, *self._text_rows()])

    def as_markup(self) -> Markup:
        """Return HTML with the title, a table of the properties and the table of the rows."""
        properties = [
            markup_element(
                "tr",
                markup_element("th", name, scope="row"),
                markup_element("td", _plain_summary_value(value)),
            )
            for name, value in self.properties.items()
        ]
        parts = [markup_element("p", markup_element("strong", self.title))]
        if properties:
            parts.append(markup_table_region(f"{self.title}: properties", [], properties))
        if self.rows:
            header = markup_header_cells(map(shorten_text, self.header))
            rows = [
                markup_element("tr", *(markup_element("td", shorten_text(c)) for c in row))
                for row in self.rows
            ]
            parts.append(markup_table_region(f"{self.title}: first rows", header, rows))
        if self._n_omitted:
            parts.append(markup_element("p", f"… {self._n_omitted:,} more"))
        return markup_element("div", *parts)

    @property
    def _n_omitted(self) -> int:
        return self.n_rows - len(self.rows) if self.header else 0

    def _text_rows(self) -> list[str]:
        """Return the lines of the table, with aligned columns."""
        if not self.rows:
            return []
        table = [[shorten_text(cell) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in table
        ]
        if self._n_omitted:
            lines.append(f"… {self._n_omitted:,} more")
        return [f"  {line.rstrip()}" for line in lines]


def format_summary_value(value: object) -> str:
    """Format the value of a property: strings in quotes, numbers with four significant digits.

    Long strings, arrays and sequences are shortened.

    Example:
        >>> format_summary_value("tiny-vit"), format_summary_value(0.123456)
        ("'tiny-vit'", '0.1235')
        >>> format_summary_value(np.array([0.5, 2.0])), format_summary_value(np.arange(80.0))
        ('[0.5, 2]', '<80 values from 0 to 79>')
        >>> format_summary_value([slice(1)] * 9), format_summary_value({"fork": 0.51234})
        ('<9 × slice>', "{'fork': 0.5123}")
    """
    if isinstance(value, str):
        return repr(shorten_text(value))
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, np.ndarray):
        return _format_summary_array(value)
    if isinstance(value, Mapping):
        return _format_summary_mapping(value)
    if isinstance(value, list | tuple) and value:
        return f"<{len(value):,} × {type(value[0]).__name__}>"
    return shorten_text(repr(value))


def shorten_text(text: str, *, max_length: int = MAX_TEXT_LENGTH) -> str:
    """Return a text on one line; an ellipsis replaces the middle of a long text.

    Control characters, surrogates and line breaks are replaced, so that any terminal and notebook
    can show the text.

    Args:
        text: Text of any length and content, such as a path.
        max_length: Maximum number of characters of the result.

    Example:
        >>> shorten_text("a-very-long-path/image.jpg", max_length=15)
        'a-very-…age.jpg'
    """
    if len(text) > max_length:
        n_end = max_length // 2
        text = f"{text[: max_length - 1 - n_end]}…{text[-n_end:]}"
    return "".join("\N{REPLACEMENT CHARACTER}" if category(c) in UNPRINTABLE else c for c in text)


def _plain_summary_value(value: object) -> str:
    """Format a value for HTML, where strings need no quotes."""
    return shorten_text(value) if isinstance(value, str) else format_summary_value(value)


def _format_summary_mapping(mapping: Mapping[Any, Any]) -> str:
    """Format the first items of a mapping."""
    items = [
        f"{format_summary_value(name)}: {format_summary_value(value)}"
        for name, value in islice(mapping.items(), MAX_ITEMS)
    ]
    return f"{{{', '.join(items)}{', …' if len(mapping) > MAX_ITEMS else ''}}}"


def _format_summary_array(array: npt.NDArray[Any]) -> str:
    """Format all elements of a small array, and the range of a larger numeric array."""
    if array.size <= MAX_ITEMS:
        return f"[{', '.join(map(format_summary_value, array.ravel()))}]"
    return f"<{array.size:,} values from {array.min():.4g} to {array.max():.4g}>"
