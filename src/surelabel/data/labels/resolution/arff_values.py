r"""Parse values of ARFF files: bare values, values in quotes, and ``?`` for a missing value."""

import re

from surelabel.file_readers import quote_of_file

_VALUE = re.compile(
    r"""\s*(?:"(?P<double>(?:[^"\\]|\\.)*+)"|'(?P<single>(?:[^'\\]|\\.)*+)'|(?P<bare>[^\s,{}'"%]++))""",
)
_SEPARATOR = re.compile(r"\s*(,?)\s*")
_CHARACTER = re.compile(r"\S")
_SPECIAL = re.compile(r"""['"%{}?]|[^\s,]\s+[^\s,]""")  # not only bare values and commas
_INDEX = re.compile(r"\s*(\d{1,9})(?=\s)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def parse_arff_value(text: str, position: int = 0) -> tuple[str | None, int]:
    r"""Return the value at a position of a line, and the position after the value.

    The value ``?`` without quotes is missing, and None is returned.

    Args:
        text: Line of an ARFF file.
        position: Position of the value, or of white space before the value.

    Raises:
        ValueError: If there is no value at the position, or a quote is not closed. The message has
            no full stop.

    Example:
        >>> parse_arff_value("'it\\'s' numeric"), parse_arff_value("1,?", 2)
        (("it's", 7), (None, 3))
    """
    match = _VALUE.match(text, position)
    if match is None:
        rest = text[position:].strip()
        kind = "a value that is not closed by a quote" if rest[:1] in ('"', "'") else "no value"
        raise ValueError(f"{kind}, at {quote_of_file(rest)}" if rest else "no value")
    if match["bare"] is not None:
        return None if match["bare"] == "?" else match["bare"], match.end()
    quoted = match["double"] if match["double"] is not None else match["single"]
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), quoted), match.end()


def split_arff_values(text: str) -> list[str | None]:
    """Return the values of a line, which are separated by commas or white space.

    A ``%`` outside quotes begins a comment.

    Args:
        text: Line of an ARFF file.

    Raises:
        ValueError: If a value is empty, or a quote is not closed. The message has no full stop.

    Example:
        >>> split_arff_values("1, 'a, b',?  % a comment")
        ['1', 'a, b', None]
    """
    values: list[str | None] = []
    if not _SPECIAL.search(text):  # most rows, much faster
        values.extend(value.strip() for value in text.split(","))
        if "" not in values:
            return values
        values.clear()
    position = 0
    while True:
        value, position = parse_arff_value(text, position)
        values.append(value)
        position, has_comma = skip_arff_separator(text, position)
        if is_arff_line_end(text, position):
            if has_comma:
                raise ValueError("no value after the last comma")
            return values


def split_sparse_arff_row(text: str, n_attributes: int) -> dict[int, str | None]:
    """Return the values of a sparse row by the index of their attribute, counted from 0.

    Args:
        text: Row in braces, in which each value follows its index.
        n_attributes: Number of attributes, which all indices must be below.

    Raises:
        ValueError: If an index or a value is invalid, an index is repeated, or the closing brace is
            missing. The message has no full stop.

    Example:
        >>> split_sparse_arff_row("{1 0.5, 7 ?}", 8)
        {1: '0.5', 7: None}
    """
    cells: dict[int, str | None] = {}
    position, has_comma = text.index("{") + 1, False
    while has_comma or next_arff_character(text, position) != "}":
        match = _INDEX.match(text, position)
        if match is None or int(match[1]) >= n_attributes:
            raise ValueError(
                f"expected the index of an attribute, from 0 to {n_attributes - 1}, and a value; "
                f"got {quote_of_file(text[position:].strip())}"
            )
        index = int(match[1])
        if index in cells:
            raise ValueError(f"the index {index} is repeated")
        cells[index], position = parse_arff_value(text, match.end())
        position, has_comma = skip_arff_separator(text, position)
        if not has_comma and text[position : position + 1] != "}":
            raise ValueError(f"expected a comma or }}; got {quote_of_file(text[position:])}")
    position = text.index("}", position) + 1
    if not is_arff_line_end(text, position):
        rest = quote_of_file(text[position:].strip())
        raise ValueError(f"{rest} after the row; weights of rows are not supported")
    return cells


def skip_arff_separator(text: str, position: int) -> tuple[int, bool]:
    """Return the position after white space and at most one comma, and True if there is a comma."""
    match = _SEPARATOR.match(text, position)
    return (position, False) if match is None else (match.end(), bool(match[1]))


def is_arff_line_end(text: str, position: int) -> bool:
    """Return True if only white space or a comment follows the position."""
    return next_arff_character(text, position) in ("", "%")


def next_arff_character(text: str, position: int) -> str:
    """Return the first character that is no white space, or an empty text at the end."""
    match = _CHARACTER.search(text, position)
    return "" if match is None else match[0]


def parse_arff_number(text: str) -> float:
    """Return the number of a value in decimal notation.

    Raises:
        ValueError: If the text is no such number, such as ``nan`` or ``1_000``.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{quote_of_file(text)}")
    return float(text)
