"""Read YAML files that can be damaged or untrusted, as texts, lists and mappings with lines.

No tag is interpreted, so that a file cannot create objects, and a label such as ``no`` or ``007``
remains a text. Anchors and aliases are refused, because a short file can expand to content that
exceeds the memory.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from surelabel.errors import DataError
from surelabel.file_readers import open_regular_file, quote_of_file, read_text

YAML_LIMIT = 2**20  # bytes of a file
MAX_DEPTH = 16  # of nested lists and mappings

_NULLS = ("", "~", "null", "Null", "NULL")  # plain scalars without a value
_REMEDY = "Correct the file."


@dataclass(frozen=True)
class YamlNode:
    """Value of a YAML file with its position.

    Attributes:
        line: Line of the value, counted from 1.
        value: Text of a scalar, a list or a mapping. If None, the scalar is empty or ``null``.
    """

    line: int
    value: "str | list[YamlNode] | dict[str, YamlNode] | None"


def read_yaml_mapping(path: str | Path) -> dict[str, YamlNode]:
    """Return the mapping of a YAML file in UTF-8.

    Args:
        path: Path of the file.

    Raises:
        DataError: If the file cannot be read, has more than 1 MiB, or is not YAML with one mapping.
            Also if it contains an anchor, an alias, a tag, a repeated key or a key that is not a
            scalar, or if it is nested more than 16 times. The message contains the line.
    """
    with open_regular_file(path) as stream:
        size = os.fstat(stream.fileno()).st_size
    if size > YAML_LIMIT:
        raise DataError(
            f"{path} must have at most {YAML_LIMIT} bytes; got {size} bytes. Check the path."
        )
    text = read_text(path, kind="a YAML file in UTF-8")
    try:
        return _read_yaml_document(path, yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}, line {mark.line + 1}" if mark else str(path)
        reason = str(error.problem or error.context).splitlines()[0]
        raise DataError(f"{place}: expected YAML; got: {reason}. {_REMEDY}") from error
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{path} must be a YAML file in UTF-8; got: {reason}. {_REMEDY}") from error


def _read_yaml_document(path: str | Path, events: Iterator[Any]) -> dict[str, YamlNode]:
    documents = []
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents.append(_read_yaml_node(path, events, next(events), 0))
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        kinds = f"{len(documents)} documents" if len(documents) != 1 else "another value"
        raise DataError(
            f"{path} must be a YAML file with one mapping, such as names: …; got {kinds}. {_REMEDY}"
        )
    return documents[0].value


def _read_yaml_node(path: str | Path, events: Iterator[Any], event: Any, depth: int) -> YamlNode:
    """Return the value that starts at an event, after its last event was read."""
    line = event.start_mark.line + 1
    if event.anchor is not None:
        sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
        raise DataError(
            f"{path}, line {line}: expected a value without anchors and aliases; got "
            f"{quote_of_file(sign + event.anchor)}. Write the value itself."
        )
    if event.tag is not None:
        raise DataError(
            f"{path}, line {line}: expected a value without a tag; got the tag "
            f"{quote_of_file(event.tag)}. Remove the tag."
        )
    if isinstance(event, yaml.ScalarEvent):
        is_null = event.implicit[0] and event.value in _NULLS
        return YamlNode(line, None if is_null else event.value)
    if depth == MAX_DEPTH:
        raise DataError(
            f"{path}, line {line}: lists and mappings must be nested at most {MAX_DEPTH} times; "
            f"got more. {_REMEDY}"
        )
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            items.append(_read_yaml_node(path, events, item, depth + 1))
        return YamlNode(line, items)
    mapping: dict[str, YamlNode] = {}
    while not isinstance(item := next(events), yaml.MappingEndEvent):
        key = _read_yaml_node(path, events, item, depth + 1)
        text = "" if key.value is None else key.value
        if not isinstance(text, str) or text in mapping:
            got = "a list or mapping" if not isinstance(text, str) else f"{text!r:.60} again"
            raise DataError(
                f"{path}, line {key.line}: each key of a mapping must be a text that occurs once; "
                f"got {got}. {_REMEDY}"
            )
        mapping[text] = _read_yaml_node(path, events, next(events), depth + 1)
    return YamlNode(line, mapping)
