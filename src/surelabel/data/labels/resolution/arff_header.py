"""Read the header of an ARFF file: the relation and the names and types of its attributes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.arff_values import (
    is_arff_line_end,
    next_arff_character,
    parse_arff_value,
    skip_arff_separator,
)
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

AttributeType = Literal["numeric", "nominal", "string", "date"]
NumberedLines = Iterator[tuple[int, str]]

_TYPES: dict[str, AttributeType] = {
    "numeric": "numeric",
    "real": "numeric",
    "integer": "numeric",
    "string": "string",
    "date": "date",
}
_DECLARATION = re.compile(r"@(\w+)(?:\s+(.*))?", re.DOTALL)
_TYPE_NAME = re.compile(r"\s*(\w+)")
_LABEL_COUNT = re.compile(r"(?:^|\s)-[Cc](?:\s+(\S+))?(?=\s|$)")
_COUNT = re.compile(r"[+-]?[1-9]\d{0,8}", re.ASCII)


@dataclass(frozen=True)
class ArffAttribute:
    """Attribute of an ARFF file, which is one column of its rows.

    Attributes:
        name: Name of the attribute.
        type: Type of its values.
        values: Allowed values of a nominal attribute, in the order of the file.
        line: Line of the declaration.
    """

    name: str
    type: AttributeType
    values: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class ArffHeader:
    """Header of an ARFF file.

    Attributes:
        attributes: Attributes in the order of the columns.
        n_labels: Number of label attributes, from the option ``-C`` of MEKA in the relation. The
            labels are the first attributes if the number is positive, and the last attributes if
            the number is negative. Without the option, the value is None.
    """

    attributes: tuple[ArffAttribute, ...]
    n_labels: int | None


def read_arff_header(path: Path, lines: NumberedLines) -> ArffHeader:
    """Read the lines of an ARFF file until the declaration ``@data``.

    Keywords and names of types are not case-sensitive. A line that begins with ``%`` is a comment.

    Args:
        path: Path of the file, for messages.
        lines: Lines of the file with their numbers, from the first line. The lines of the header
            are consumed.

    Raises:
        DataError: If a declaration is invalid or missing, a name is repeated, or the option ``-C``
            is invalid.
    """
    relation: tuple[int, str] | None = None
    attributes: dict[str, ArffAttribute] = {}
    number = 0
    for number, line in lines:
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        match = _DECLARATION.fullmatch(text)
        keyword, rest = (match[1].casefold(), match[2] or "") if match else ("", "")
        place = f"{path}, line {number}"
        if keyword == "relation" and relation is None:
            relation = number, rest
        elif keyword == "attribute" and relation is not None:
            attribute = _parse_arff_attribute(place, rest, number)
            if attribute.name in attributes:
                raise DataError(
                    f"{place}: the names of attributes must be unique; got "
                    f"{quote_of_file(attribute.name)}, which is also on line "
                    f"{attributes[attribute.name].line}. Rename one of them."
                )
            attributes[attribute.name] = attribute
        elif keyword == "data" and attributes and relation and is_arff_line_end(rest, 0):
            n_labels = _parse_label_count(path, *relation, len(attributes))
            return ArffHeader(tuple(attributes.values()), n_labels)
        else:
            raise DataError(f"{place}: {_describe_expected(relation, attributes, text)}")
    raise DataError(
        f"{path}, line {number + 1}: an ARFF file must contain @relation, @attribute and @data; "
        "got the end of the file before @data. Copy the file again."
    )


def _describe_expected(
    relation: tuple[int, str] | None, attributes: dict[str, ArffAttribute], text: str
) -> str:
    expected = "@relation" if relation is None else "@attribute or @data"
    expected = "@attribute" if relation is not None and not attributes else expected
    return f"expected {expected}; got {quote_of_file(text)}. Correct the header of the ARFF file."


def _parse_arff_attribute(place: str, text: str, line: int) -> ArffAttribute:
    """Return the attribute of a declaration, without its keyword.

    Raises:
        DataError: If the name or the type is invalid.
    """
    try:
        name, position = parse_arff_value(text)
        kind, values, position = _parse_arff_type(text, position)
        if not is_arff_line_end(text, position):
            raise ValueError(f"{quote_of_file(text[position:].strip())} after the type")
    except ValueError as error:
        raise DataError(
            f"{place}: expected @attribute NAME TYPE, where TYPE is numeric, real, integer, string "
            f"or a list such as {{0,1}}; got {error}. Correct the declaration; a name with spaces "
            "needs quotes."
        ) from error
    if not name or not name.strip() or has_control_character(name):
        raise DataError(
            f"{place}: the name of an attribute must be a text without control characters; got "
            f"{quote_of_file(name or '?')}. Rename the attribute."
        )
    return ArffAttribute(name, kind, values, line)


def _parse_arff_type(text: str, position: int) -> tuple[AttributeType, tuple[str, ...], int]:
    """Return a type, the allowed values of a nominal type, and the position after the type.

    Raises:
        ValueError: If the type is invalid. The message has no full stop.
    """
    if next_arff_character(text, position) == "{":
        values, position = _parse_nominal_values(text, text.index("{", position) + 1)
        return "nominal", values, position
    match = _TYPE_NAME.match(text, position)
    if match is None:
        raise ValueError(f"{quote_of_file(text)} without a type")
    if match[1].casefold() not in _TYPES:
        raise ValueError(f"the type {quote_of_file(match[1])}")
    kind = _TYPES[match[1].casefold()]
    return kind, (), len(text) if kind == "date" else match.end()


def _parse_nominal_values(text: str, position: int) -> tuple[tuple[str, ...], int]:
    """Return the values before a closing brace, and the position after the brace.

    Raises:
        ValueError: If a value is invalid or repeated, or if the brace is missing.
    """
    values: dict[str, None] = {}
    while next_arff_character(text, position) != "}":
        value, position = parse_arff_value(text, position)
        if value is None or value in values:
            raise ValueError(f"the value {quote_of_file(value or '?')} twice or without quotes")
        values[value] = None
        position, _ = skip_arff_separator(text, position)
    if not values:
        raise ValueError("a list without values")
    return tuple(values), text.index("}", position) + 1


def _parse_label_count(path: Path, line: int, relation: str, n_attributes: int) -> int | None:
    """Return the option ``-C`` of a relation, or None if the relation has no such option.

    Raises:
        DataError: If the option is no whole number, is 0, or exceeds the number of attributes.
    """
    text = relation.strip()
    if text[:1] in ('"', "'"):
        try:
            text = parse_arff_value(text)[0] or ""
        except ValueError as error:
            raise DataError(
                f"{path}, line {line}: expected @relation NAME; got {error}. Correct the name."
            ) from error
    match = _LABEL_COUNT.search(text.partition(":")[2])
    if match is None:
        return None
    if not _COUNT.fullmatch(match[1] or "") or abs(int(match[1])) > n_attributes:
        raise DataError(
            f"{path}, line {line}: the option -C must be the number of label attributes, positive "
            "for the first attributes or negative for the last attributes, at most "
            f"{n_attributes}; got {quote_of_file(match[1] or '')}. Correct the option."
        )
    return int(match[1])
