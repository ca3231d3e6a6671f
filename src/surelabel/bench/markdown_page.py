"""Format sections, lists and tables of a comparison page as Markdown."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

RowT = TypeVar("RowT")


def markdown_section(paragraphs: Iterable[str]) -> str:
    """Return paragraphs, lists and tables as one section, separated by empty lines."""
    return "\n\n".join(paragraphs) + "\n"


def markdown_list(items: Iterable[str]) -> str:
    """Return a bullet list."""
    return "\n".join(f"- {item}" for item in items)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a header row."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_table_of_rows(
    rows: Iterable[RowT], columns: Mapping[str, Callable[[RowT], str]]
) -> str:
    """Return a table with one line for each row.

    Args:
        rows: Rows of the table.
        columns: Functions that return the text of a cell from a row, by column header.
    """
    cells = [[column(row) for column in columns.values()] for row in rows]
    return markdown_table(list(columns), cells)


def bold_if(is_bold: bool, text: str) -> str:
    """Return a text in bold if the condition is True, and unchanged otherwise."""
    return f"**{text}**" if is_bold else text
