"""Format text and JSON values for a terminal: tables, lines, and escaped control characters."""

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Protocol, runtime_checkable

_REORDERING = r"\u2028-\u202e\u2066-\u2069\ud800-\udfff"  # and line separators and surrogates
_CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_REORDERING}]")
_LINE_CONTROL = re.compile(rf"[\x00-\x1f\x7f-\x9f{_REORDERING}]")
MESSAGE_LIMIT = 2000  # characters of a message; the middle of a longer message is omitted


def join_lines_for_terminal(text: object) -> str:
    """Join the lines of a message into one line, escape control characters, and shorten the line.

    A damaged file can contain a label of a million characters, which some messages repeat.
    """
    line = escape_terminal_text(" ".join(line.strip() for line in str(text).splitlines()))
    half = MESSAGE_LIMIT // 2
    return line if len(line) <= MESSAGE_LIMIT else f"{line[:half]} … {line[-half:]}"


def escape_terminal_text(text: str) -> str:
    """Return a text without characters that control the terminal, except line breaks and tabs.

    File names can contain escape sequences that change the terminal, characters that reverse the
    order of the text, and bytes that are not Unicode. Each such character is replaced by ``\\u``
    and four hexadecimal digits, which is also valid in a JSON string.

    Example:
        >>> escape_terminal_text("red \\x1b[31m.jpg")
        'red \\\\u001b[31m.jpg'
    """
    return _CONTROL.sub(_escape_control_character, text)


def escape_terminal_line(text: object) -> str:
    """Return a path or label without control characters, including line breaks and tabs."""
    return _LINE_CONTROL.sub(_escape_control_character, str(text))


def _escape_control_character(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def format_terminal_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format a table as text with aligned columns.

    Args:
        header: Column titles.
        rows: Cells of each row.
    """
    lines = [[escape_terminal_line(cell) for cell in line] for line in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([c.ljust(w) for c, w in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


@runtime_checkable
class ConvertibleToList(Protocol):
    """Array or tensor; the command line imports neither NumPy nor PyTorch to print text."""

    def tolist(self) -> object:
        """Return the elements as nested lists, or one number."""


def to_terminal_json_value(value: Any) -> Any:
    """Convert arrays to lists, keys to strings, and non-finite numbers to None, for strict JSON."""
    if isinstance(value, Mapping):
        return {str(key): to_terminal_json_value(item) for key, item in value.items()}
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, ConvertibleToList):
        return to_terminal_json_value(value.tolist())
    return [to_terminal_json_value(item) for item in value]
