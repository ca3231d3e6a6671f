"""What a file was when it was indexed, so that a changed one can be found."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from surelabel.errors import InputError

SCHEMA = pa.schema(
    {"path": pa.string(), "bytes": pa.int64(), "mtime_ns": pa.int64(), "hash": pa.string()}
)


@dataclass(frozen=True)
class Stamp:
    """Size, time and content of one file.

    Attributes:
        bytes: Size.
        mtime_ns: When it was last written, nanoseconds since 1970.
        hash: BLAKE2b of its content, 128 bits in hexadecimal.
    """

    bytes: int
    mtime_ns: int
    hash: str


def stamp(path: str) -> Stamp | None:
    """The stamp of a file as it is now; None when there is no readable file."""
    try:
        with Path(path).open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
        status = Path(path).stat()
    except OSError:
        return None
    return Stamp(status.st_size, status.st_mtime_ns, digest.hexdigest())


def stamped(paths: Sequence[str]) -> pa.Table:
    """One row a picture: its path and its stamp, empty where there is no file.

    Raises:
        InputError: a path stands there twice, or is no text.
    """
    stamps = [stamp(path) for path in paths]
    try:
        column = pa.array(paths, pa.string())
    except UnicodeEncodeError as error:
        raise InputError(
            f"Paths must be valid Unicode to be stored. Got {error.object!r}: rename that file."
        ) from error
    if len(column.unique()) < len(column):
        seen: set[str] = set()
        twice = next(path for path in paths if path in seen or seen.add(path))  # type: ignore[func-returns-value]
        raise InputError(f"A picture is indexed once. {twice!r} comes twice: drop one of the two.")
    fields = [[s and getattr(s, name) for s in stamps] for name in SCHEMA.names[1:]]
    return pa.table([column, *fields], schema=SCHEMA)


def change(path: str, then: Stamp | None) -> str | None:
    """Why a file is not what it was, in words; None when it is.

    A file of the same size and time is taken to be the same; otherwise its content decides, so
    that a mere touch or copy changes nothing.
    """
    status = Path(path).stat()
    if then is None:
        return "its file could not be read when it was indexed"
    if (status.st_size, status.st_mtime_ns) == (then.bytes, then.mtime_ns):
        return None
    now = stamp(path)
    if now is None:
        return "its file cannot be read any more"
    return None if now.hash == then.hash else "its content changed after it was indexed"
