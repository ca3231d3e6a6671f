"""What a file was when it was predicted, so that a changed one can be found."""

import hashlib
import os
from collections.abc import Iterable, Sequence
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
        bytes: Size; None where only the content is known.
        mtime_ns: When it was last written, nanoseconds since 1970; None where only the content is
            known.
        hash: BLAKE2b of its content, 128 bits in hexadecimal.
    """

    bytes: int | None
    mtime_ns: int | None
    hash: str


def whole(paths: Iterable[str]) -> list[str]:
    """Absolute paths, so that they mean the same from every folder."""
    return [os.path.abspath(path) for path in paths]


def storable(path: str) -> bool:
    """Whether a path is text; Unix allows file names that are not."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def stamp(path: str) -> Stamp | None:
    """The stamp of a file as it is now; None when there is no readable file."""
    try:
        with Path(path).open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
        status = Path(path).stat()
    except OSError:
        return None
    return Stamp(status.st_size, status.st_mtime_ns, digest.hexdigest())


def stamped(paths: Sequence[str], hashes: Sequence[str] | None = None) -> pa.Table:
    """One row a picture: its whole path and its stamp, empty where there is no file.

    Args:
        paths: One file each.
        hashes: Of what was predicted, where that is known; the stamp of a file that is another
            one by now has nothing but this.

    Raises:
        InputError: a path stands there twice, or is no text.
    """
    paths = whole(paths)
    if bad := [path for path in paths if not storable(path)]:
        raise InputError(
            f"Paths must be valid Unicode to be stored. Got {bad[0]!r}: rename that file."
        )
    stamps = [stamp(path) for path in paths]
    if hashes is not None:
        stamps = [_of_content(now, hash) for now, hash in zip(stamps, hashes, strict=True)]
    column = pa.array(paths, pa.string())
    if len(column.unique()) < len(column):
        seen: set[str] = set()
        twice = next(path for path in paths if path in seen or seen.add(path))  # type: ignore[func-returns-value]
        raise InputError(f"A picture is indexed once. {twice!r} comes twice: drop one of the two.")
    fields = [[s and getattr(s, name) for s in stamps] for name in SCHEMA.names[1:]]
    return pa.table([column, *fields], schema=SCHEMA)


def _of_content(now: Stamp | None, hash: str) -> Stamp:
    return now if now and now.hash == hash else Stamp(None, None, hash)


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
    return None if now.hash == then.hash else "its content changed after it was predicted"
