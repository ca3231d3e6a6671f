"""Read labels from strings, files and standard input, and parse their aliases."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from surelabel.data.text_lists import read_text_list, read_text_list_from_stdin
from surelabel.errors import InputError
from surelabel.file_readers import check_regular_file
from surelabel.label_aliases import (
    LiteralLabel,
    comparable_spelling,
    remove_direction_marks,
    split_label_aliases,
)

NAME_LIMIT = 200  # characters of a label
LIST_SUFFIXES = (".txt", ".csv", ".tsv", ".lst", ".list", ".names")  # of files with labels

_LABEL_FILE_REMEDY = (
    "Give a file with one label per line, - for standard input, or the labels themselves: "
    '"dog, bicycle". If a single label contains /, write the label into a file.'
)
_LABEL = re.compile(  # one label of a string, after a comma or line break
    r'(?:\A|[,\n])(?:[^\S\n]*"((?:[^"\n]|"")+)"[^\S\n]*(?=[,\n]|\Z)|([^,\n]*))'
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def read_label_names(source: str | Path) -> list[str]:
    """Return labels from a comma-separated string, a file or standard input.

    Args:
        source: Labels such as ``"dog, bicycle"``, the path of a file with one label per line,
            or ``-`` for standard input with one label per line. A string without commas is treated
            as a path if it contains / or ends with one of ``LIST_SUFFIXES``. The name of a file
            that exists is always a path. As in CSV, a label of a string can be in double quotes and
            then contain commas; ``""`` in it is one quote.

    Returns:
        The labels without surrounding spaces. An empty line is returned as ``""``, so that label i
        is on line i + 1; :func:`parse_label_names` removes empty labels.

    Raises:
        DataError: If the file does not exist, is not a regular file, or is not UTF-8 text.
    """
    text = str(source)
    if text == "-":
        return read_text_list_from_stdin()
    if isinstance(source, Path) or _is_label_file_path(text):
        check_regular_file(text, remedy=_LABEL_FILE_REMEDY)
        return read_text_list(text)
    labels = _LABEL.findall(text)
    return [(quoted.replace('""', '"') or plain).strip() for quoted, plain in labels]


def parse_label_names(names: Sequence[str]) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Check labels and separate them from their aliases.

    Args:
        names: Labels; ``"sofa|couch"`` is the label ``sofa`` with the alias ``couch``. A ``|`` that
            is no separator is written ``\\|``; in a ``LiteralLabel``, no ``|`` is a separator.
            Empty strings are ignored.

    Returns:
        The labels, and a mapping from each label to the label and its aliases.

    Raises:
        InputError: If ``names`` is a string or has no labels. Also if a label is repeated (ignoring
            case and marks of the writing direction), is longer than 200 characters, contains a
            control character, or has an empty alias. The message contains the position of the
            label, counted from 1 as a line number.

    Example:
        >>> parse_label_names(["sofa|couch", "dog"])
        (['sofa', 'dog'], {'sofa': ('sofa', 'couch'), 'dog': ('dog',)})
    """
    if isinstance(names, str):
        raise InputError(
            f"names must be a list of labels; got the string {names!r}. Write [{names!r}]."
        )
    aliases: dict[str, tuple[str, ...]] = {}
    first_of: dict[str, tuple[str, int]] = {}
    for line, entry in enumerate(names, start=1):
        if not entry.strip():
            continue
        spellings = split_label_aliases(entry)
        for spelling in spellings:
            _check_label_name(spelling, line)
            key = comparable_spelling(spelling)
            if key in first_of:
                raise _repeated_label_error(*first_of[key], spelling, line)
            first_of[key] = spelling, line
        name = LiteralLabel(spellings[0]) if "|" in spellings[0] else spellings[0]
        aliases[name] = spellings
    if not aliases:
        raise InputError(
            'Expected at least one label; got none. Give labels as "dog, bicycle" or as a file '
            "with one label per line."
        )
    return list(aliases), aliases


def has_control_character(text: str) -> bool:
    """Return True if a text has a control character, a line break or an invalid code point.

    Marks of the writing direction, such as the right-to-left mark, are no control characters.
    """
    return _CONTROL.search(text) is not None


def _is_label_file_path(text: str) -> bool:
    if os.path.exists(text) and not os.path.isdir(text):
        return True
    if "," in text or "\n" in text:
        return False
    return text.lower().endswith(LIST_SUFFIXES) or "/" in text or os.sep in text


def _check_label_name(name: str, line: int) -> None:
    problem = ""
    if not name:
        problem = "is empty, because a spelling before or after | is missing"
    elif len(name) > NAME_LIMIT:
        problem = f"has {len(name)} characters, but must have at most {NAME_LIMIT}"
    elif has_control_character(name):
        problem = "contains a control character, such as a tab or a line break, or invalid Unicode"
    if problem:
        raise InputError(
            f"The label {_shorten_label_name(name)} on line {line} {problem}. Correct that line."
        )


def _repeated_label_error(first: str, first_line: int, second: str, line: int) -> InputError:
    """Return the error for two labels that differ at most in case and direction marks."""
    places = f"{_shorten_label_name(second)} on line {first_line} and again on line {line}"
    if remove_direction_marks(first) != first or remove_direction_marks(second) != second:
        places = (
            f"{_shorten_label_name(first)} on line {first_line} and {_shorten_label_name(second)} "
            f"on line {line}, which are equal without invisible direction marks"
        )
    return InputError(
        f"Labels must be unique, ignoring case; got {places}. Remove one of the two labels."
    )


def _shorten_label_name(name: str) -> str:
    return repr(name if len(name) <= 40 else f"{name[:40]}…")
