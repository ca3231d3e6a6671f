"""Read text lists with one entry per line, from files and standard input."""

import sys
from codecs import getincrementaldecoder
from pathlib import Path

from surelabel.errors import DataError
from surelabel.file_readers import (
    SAVE_AS_UTF8,
    describe_undecodable_text,
    open_regular_file,
    read_text,
)

LINE_LIMIT = 10_000  # characters of an entry; a path has at most 4096 bytes
FIRST_LINE_LIMIT = 100_000  # bytes


def read_text_list(path: str | Path) -> list[str]:
    """Return the lines of a text file without surrounding spaces; empty lines are included.

    Raises:
        DataError: If the file cannot be read, is not UTF-8 text or contains a NUL byte, or if a
            line is longer than 10,000 characters.
    """
    return _split_text_list(read_text(path), str(path))


def read_text_list_from_stdin() -> list[str]:
    """Return the lines of standard input without surrounding spaces; empty lines are included.

    Raises:
        DataError: If standard input is not UTF-8 text or contains a NUL byte, or if a line is
            longer than 10,000 characters.
    """
    try:
        text = sys.stdin.read().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise DataError(
            "Standard input must be text in UTF-8; got other bytes. Convert the text to UTF-8."
        ) from error
    return _split_text_list(text, "standard input")


def read_first_line(path: str | Path) -> str:
    """Return the first line of a file, at most 100,000 bytes, without surrounding spaces.

    The first line determines the format of a file.

    Raises:
        DataError: If the file cannot be read, or if the line is not UTF-8 text.
    """
    with open_regular_file(path) as file:
        line = file.readline(FIRST_LINE_LIMIT)
    try:
        return getincrementaldecoder("utf-8-sig")().decode(line).strip()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} must be text in UTF-8; got {describe_undecodable_text(line, error.start)}. "
            f"{SAVE_AS_UTF8}"
        ) from error


def _split_text_list(text: str, source: str) -> list[str]:
    """Return the lines of a list without surrounding spaces.

    Raises:
        DataError: If a line is longer than 10,000 characters, or contains a NUL byte.
    """
    lines = [line.strip(" \t\r") for line in text.removesuffix("\n").split("\n")]
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_LIMIT:
            raise DataError(
                f"Line {number} of {source} must have at most {LINE_LIMIT} characters; got "
                f"{len(line)} characters: {line[:40]!r}…. Write one entry per line."
            )
        if "\0" in line:
            raise DataError(
                f"Line {number} of {source} must be text; got a NUL byte after "
                f"{line.partition(chr(0))[0][:40]!r}. Save the list as text in UTF-8."
            )
    return lines
