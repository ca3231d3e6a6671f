"""Text lists with one entry per line, in files and on standard input."""

import sys
from pathlib import Path

from surelabel.errors import DataError


def read_text_list(path: str | Path) -> list[str]:
    """Return the lines of a text file without surrounding spaces; empty lines are included.

    Raises:
        DataError: If the file cannot be read or is not UTF-8 text.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} must be text in UTF-8; got other bytes at position {error.start}. "
            "Save the file as UTF-8."
        ) from error
    return _split_text_list(text)


def read_text_list_from_stdin() -> list[str]:
    """Return the lines of standard input without surrounding spaces; empty lines are included.

    Raises:
        DataError: If standard input is not UTF-8 text.
    """
    try:
        text = sys.stdin.read().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise DataError(
            "Standard input must be text in UTF-8; got other bytes. Convert the text to UTF-8."
        ) from error
    return _split_text_list(text)


def _split_text_list(text: str) -> list[str]:
    return [line.strip(" \t\r") for line in text.removesuffix("\n").split("\n")]
