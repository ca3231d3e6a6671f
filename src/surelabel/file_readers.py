"""Read text, JSON and TOML from files that can be damaged or untrusted.

Each function checks that the file is a regular file, because a named pipe, a socket or a device can
block a process forever. Each failure raises a DataError with a one-line message that contains the
path of the file.
"""

import codecs
import json
import os
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from surelabel.errors import DataError

TEXT_LIMIT = 4 * 2**30  # bytes of a file that is read as one text
LINE_LIMIT = 64 * 2**20  # bytes of a line
TOML_LIMIT = 2**20  # bytes; the time and memory of tomllib grow with the square of the nesting
COPY_AGAIN = "Copy the file again."
CHECK_PATH = "Check the path and its permissions."
SAVE_AS_UTF8 = "Save the file as UTF-8."

_URL = re.compile(r"(?:^|[/\\])[A-Za-z][A-Za-z0-9+.-]*://")
_BYTE_ORDER_MARKS = {  # UTF-32 is first, because its mark begins with the mark of UTF-16
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_REASON_LIMIT = 200  # characters
_QUOTE_LIMIT = 60  # maximum number of characters that a message quotes from a file
_TOML_STRING_OR_COMMENT = re.compile(  # a closing quote is optional, so that the time is linear
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)'
    r"|'''.*?(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|(?P<comment>\#[^\n]*)",
    re.DOTALL,
)
_NESTED_TOML_KEY = re.compile(r"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){32}")
_FILE_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextmanager
def open_regular_file(path: str | Path, *, remedy: str = CHECK_PATH) -> Iterator[BinaryIO]:
    """Open a regular file for reading bytes, without waiting for another process.

    Args:
        path: Path of the file, or of a symbolic link to the file.
        remedy: Last sentence of the error message.

    Raises:
        DataError: If the file does not exist, cannot be opened or read, or is not a regular file.
    """
    try:
        _check_file_mode(path, os.stat(path).st_mode, remedy)  # opening a device can change it
        descriptor = os.open(path, _OPEN_FLAGS)
        with os.fdopen(descriptor, "rb") as stream:
            _check_file_mode(path, os.fstat(descriptor).st_mode, remedy)
            yield stream
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}. {remedy}") from error
    except ValueError as error:
        if isinstance(error, DataError) or "null byte" not in str(error):
            raise
        raise DataError(f"A path must not contain a NUL byte; got {str(path)!r}.") from error


def check_regular_file(path: str | Path, *, remedy: str = CHECK_PATH) -> None:
    """Check that a path is a regular file that can be opened, before a library opens the path.

    Args:
        path: Path of the file, or of a symbolic link to the file.
        remedy: Last sentence of the error message.

    Raises:
        DataError: If the file does not exist, cannot be opened, or is not a regular file.
    """
    with open_regular_file(path, remedy=remedy):
        pass


def read_text(path: str | Path, *, kind: str = "text in UTF-8", remedy: str | None = None) -> str:
    r"""Return the text of a UTF-8 file, without a byte order mark and with ``\n`` as line ends.

    Args:
        path: Path of the file.
        kind: Kind of file in the error message.
        remedy: Last sentence of the error message. If None, ``CHECK_PATH`` or ``SAVE_AS_UTF8`` is
            used.

    Raises:
        DataError: If the file cannot be read, is not UTF-8 text, contains a NUL byte, or has more
            than 4 GiB.
    """
    return _read_limited_text(path, TEXT_LIMIT, kind, remedy)


@contextmanager
def open_lines(path: str | Path) -> Iterator[Iterator[str]]:
    r"""Open a UTF-8 file for reading lines, with their ``\n`` and without a byte order mark.

    A ``\r`` before the ``\n`` is part of the line.

    Raises:
        DataError: If the file cannot be read, or when a line is read that is not UTF-8 text or has
            more than 64 MiB. The message contains the number of the line.
    """
    with open_regular_file(path) as stream:
        yield _decode_lines(path, stream)


def _decode_lines(path: str | Path, stream: BinaryIO) -> Iterator[str]:
    lines = iter(lambda: stream.readline(LINE_LIMIT + 1), b"")
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_LIMIT:
            raise DataError(
                f"{path}, line {number}: a line must have at most {LINE_LIMIT} bytes; got a "
                "longer line. Split the line."
            )
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, line {number}: expected text in UTF-8; got "
                f"{describe_undecodable_text(line, error.start)}. {SAVE_AS_UTF8}"
            ) from error
        yield text


def read_json(path: str | Path, *, kind: str | None = None, remedy: str = COPY_AGAIN) -> Any:
    """Return the value of a JSON file in UTF-8.

    Args:
        path: Path of the file.
        kind: Expected kind of file for the error message, such as ``a COCO file in JSON``. Use
            None for a file that this package writes; the message then states that it is damaged.
        remedy: Last sentence of the error message.

    Raises:
        DataError: If the file cannot be read or is not valid JSON; see :func:`parse_json`.
    """
    text = _read_limited_text(path, TEXT_LIMIT, kind, remedy)
    try:
        return parse_json(text)
    except ValueError as error:
        raise unreadable_file_error(path, kind, str(error), remedy) from error


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. NaN and Infinity are accepted, as Python writes them.

    Raises:
        ValueError: If the text is not valid JSON or not UTF-8, or if an object contains a key
            twice. If a number has more than 4300 digits, or if lists and objects are nested too
            deeply for Python. The message has one line, without a full stop.
    """
    try:
        return json.loads(text, object_pairs_hook=_json_object)
    except json.JSONDecodeError as error:
        raise ValueError(str(error)) from error
    except UnicodeDecodeError as error:
        raise ValueError(f"bytes that are not UTF-8 at position {error.start}") from error
    except RecursionError as error:
        raise ValueError("lists and objects that are nested too deeply") from error
    except ValueError as error:
        if "digits" not in str(error):
            raise
        raise ValueError("a number with more than 4300 digits") from error


def read_toml(path: str | Path, *, remedy: str = "Correct the file.") -> dict[str, Any]:
    """Return the content of a TOML file in UTF-8.

    Args:
        path: Path of the file.
        remedy: Last sentence of the error message.

    Raises:
        DataError: If the file cannot be read, has more than 1 MiB, or is not valid TOML; see
            :func:`parse_toml`.
    """
    text = _read_limited_text(path, TOML_LIMIT, "a TOML file", remedy)
    try:
        return parse_toml(text)
    except ValueError as error:
        raise unreadable_file_error(path, "a TOML file", str(error), remedy) from error


def parse_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML text.

    Raises:
        ValueError: If the text is not valid TOML, a key has more than 32 parts, a number has more
            than 4300 digits, or arrays and tables are nested too deeply for Python. The message has
            one line, without a full stop.
    """
    keys = _TOML_STRING_OR_COMMENT.sub(lambda m: "" if m["comment"] else "x", text)
    if _NESTED_TOML_KEY.search(keys):
        raise ValueError("a key with more than 32 parts")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("arrays and tables that are nested too deeply") from error
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:
        raise ValueError("a number with more than 4300 digits") from error


def unreadable_file_error(
    path: str | Path, kind: str | None, reason: str, remedy: str
) -> DataError:
    """Return the error for a file whose content cannot be read.

    Args:
        path: Path of the file.
        kind: Expected kind of file. Use None for a file that this package writes; the message then
            states that it is damaged.
        reason: Description of the invalid content, without a full stop. Only the first 200
            characters of the first line are used.
        remedy: Last sentence of the error message.
    """
    line = reason.strip().splitlines()[0].rstrip(".")[:_REASON_LIMIT]
    problem = f"is damaged: {line}" if kind is None else f"must be {kind}; got: {line}"
    return DataError(f"{path} {problem}. {remedy}")


def describe_undecodable_text(content: bytes, start: int) -> str:
    """Describe bytes that are not UTF-8: text in another encoding, or the byte at ``start``.

    Args:
        content: Content of a file, or of a line after the first one.
        start: Position of the first byte that is not UTF-8.

    Example:
        >>> describe_undecodable_text("café".encode("latin-1"), 3)
        'bytes that are not UTF-8 at position 3, such as 0xe9 (é in Windows-1252)'
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return f"text in {encoding}"
    first = content[:_REASON_LIMIT]
    if first.count(0) > len(first) / 4:
        return "text in UTF-16 without a byte order mark"
    byte = content[start : start + 1]
    letter = byte.decode("cp1252", "replace")
    as_letter = f" ({letter} in Windows-1252)" if letter.isalnum() else ""
    position = f"bytes that are not UTF-8 at position {start}"
    return f"{position}, such as 0x{byte.hex()}{as_letter}"


def contains_url(path: str) -> bool:
    """Return True if a path is a URL such as ``https://…``, or a folder followed by a URL."""
    return _URL.search(path) is not None


def quote_of_file(value: object) -> str:
    """Return the ``repr`` of a value of a file for a message, shortened to 60 characters."""
    text = repr(value[:_QUOTE_LIMIT]) if isinstance(value, str) else repr(value)
    return text if len(text) <= _QUOTE_LIMIT else f"{text[:_QUOTE_LIMIT]}…"


def _check_file_mode(path: str | Path, mode: int, remedy: str) -> None:
    if not stat.S_ISREG(mode):
        kind = _FILE_KINDS.get(stat.S_IFMT(mode), "another kind of file")
        raise DataError(f"{path} cannot be read: expected a regular file; got {kind}. {remedy}")


def _read_limited_text(path: str | Path, limit: int, kind: str | None, remedy: str | None) -> str:
    """Return the text of a file with at most ``limit`` bytes; check the size first."""
    with open_regular_file(path, remedy=remedy or CHECK_PATH) as stream:
        remedy = remedy or SAVE_AS_UTF8
        size = os.fstat(stream.fileno()).st_size
        if size > limit:
            raise DataError(
                f"{path} must have at most {limit} bytes; got {size} bytes. Divide the file, or "
                "check the path."
            )
        try:
            text = stream.read(size).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            reason = describe_undecodable_text(error.object, error.start)
            raise unreadable_file_error(path, kind, reason, remedy) from error
        except MemoryError as error:
            raise DataError(
                f"{path} does not fit into memory ({size} bytes). Free memory, or divide the file."
            ) from error
    if (position := text.find("\0")) >= 0:
        raise unreadable_file_error(path, kind, f"a NUL byte at position {position}", remedy)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise ValueError(
            f"an object that contains the key {quote_of_file(counts.most_common(1)[0][0])} twice"
        )
    return value
