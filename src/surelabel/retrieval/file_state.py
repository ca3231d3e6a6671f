"""Record the state of indexed files, to detect changes, and date, width and height of images."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from surelabel.data.image_headers import image_header_reading, read_image_header
from surelabel.errors import DataError, InputError
from surelabel.storage.image_paths import absolute_image_path
from surelabel.storage.stored_images import (
    StoredImageStatus,
    open_stored_image,
    stored_image_status,
)

FILE_STATE_FIELDS = {
    "path": pa.string(),
    "bytes": pa.int64(),
    "mtime_ns": pa.int64(),
    "hash": pa.string(),
}
METADATA_FIELDS = {"date": pa.timestamp("ms"), "width": pa.int32(), "height": pa.int32()}
FILE_STATE_SCHEMA = pa.schema(FILE_STATE_FIELDS | METADATA_FIELDS)
READING_THREADS = 8


@dataclass(frozen=True)
class FileState:
    """Size, modification time and content hash of one file.

    Size and modification time of an image in a tar archive or a Parquet table are those of the
    archive or table.

    Attributes:
        bytes: Size in bytes. If only the content hash was recorded, the size is None.
        mtime_ns: Modification time in nanoseconds since 1970. If only the content hash was
            recorded, the time is None.
        hash: BLAKE2b hash of the content, 128 bits in hexadecimal.
    """

    bytes: int | None
    mtime_ns: int | None
    hash: str


def absolute_file_state_paths(paths: Iterable[str]) -> list[str]:
    """Convert paths to absolute paths, which do not depend on the working directory."""
    return [absolute_image_path(path) for path in paths]


def is_valid_file_state_path(path: str) -> bool:
    """Return whether a path is valid Unicode; Unix also allows other bytes in paths."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_file_state(path: str) -> FileState | None:
    """Return the current state of a file, or None if the file does not exist or cannot be read.

    Size and modification time are read before the content. If the file changes while it is read,
    the recorded modification time is too old. The next comparison then hashes the file again.
    """
    try:
        status = stored_image_status(path)
        if status is None:
            return None
        with open_stored_image(path) as file:
            return FileState(status.size, status.mtime_ns, _hash_file(file))
    except DataError:
        return None


def file_state_table(paths: Sequence[str], hashes: Sequence[str] | None = None) -> pa.Table:
    """Return a table with the absolute path, file state, date, width and height of each image.

    The date is that of the EXIF data, or else the modification time, in local time. If a file
    cannot be read, all fields except its path and a given hash are null. Width and height of a RAW
    image, or of a file that is not an image, are null.

    Args:
        paths: Paths of the images, length n.
        hashes: Content hashes at prediction time, length n. If the hash of the current file is
            different, only the given hash is recorded. If None, the current hashes are recorded.

    Raises:
        InputError: If a path occurs twice or is not valid Unicode.
    """
    paths = absolute_file_state_paths(paths)
    if invalid_paths := [path for path in paths if not is_valid_file_state_path(path)]:
        raise InputError(
            f"Image paths must be valid Unicode; got {invalid_paths[0]!r}. Rename this file."
        )
    column = pa.array(paths, pa.string())
    if len(column.unique()) < len(column):
        duplicate = next(path for path, count in Counter(paths).items() if count > 1)
        raise InputError(
            f"Image paths must be distinct; got {duplicate!r} more than once. Remove the "
            "repeated paths."
        )
    rows = _read_files(paths)
    if hashes is not None:
        rows = [
            row if row.hash == hash else _FileRow(hash=hash)
            for row, hash in zip(rows, hashes, strict=True)
        ]
    fields = [list(field) for field in zip(*rows, strict=True)] or [[]] * len(_FileRow._fields)
    return pa.table([column, *fields], schema=FILE_STATE_SCHEMA)


def add_file_metadata(table: pa.Table, paths: Sequence[str]) -> pa.Table:
    """Return a table of file states with the date, width and height of each unchanged file.

    If the content hash of a file differs from the hash in the table, the three fields are null.

    Args:
        table: Paths and file states of ``n`` images, as in an index of version 1.
        paths: Absolute paths of the images, length n.
    """
    hashes = table["hash"].to_pylist()
    rows = [
        row if row.hash == hash else _FileRow()
        for row, hash in zip(_read_files(paths), hashes, strict=True)
    ]
    for name, kind in METADATA_FIELDS.items():
        values = pa.array([getattr(row, name) for row in rows], kind)
        table = table.append_column(pa.field(name, kind), values)
    return table


def replace_file_state_paths(table: pa.Table, paths: Sequence[str]) -> pa.Table:
    """Return a table of file states in which the paths are replaced, one for each row."""
    return table.set_column(0, FILE_STATE_SCHEMA.field("path"), pa.array(paths, pa.string()))


def describe_file_state_change(
    path: str, recorded: FileState | None, status: StoredImageStatus
) -> str | None:
    """Return the reason why a file is considered changed, or None if the file is unchanged.

    If size and modification time equal the recorded values, the file is unchanged. Otherwise the
    content hashes are compared. A file with a new modification time and the same content counts as
    unchanged.

    Args:
        path: Path of the file.
        recorded: State of the file in the index. If None, the file could not be read when the file
            was indexed.
        status: Current size and modification time, from :func:`stored_image_status`.
    """
    if recorded is None:
        return "the file could not be read when it was indexed"
    if (status.size, status.mtime_ns) == (recorded.bytes, recorded.mtime_ns):
        return None
    current = read_file_state(path)
    if current is None:
        return "the file can no longer be read"
    return (
        None if current.hash == recorded.hash else "the file content changed after the prediction"
    )


class _FileRow(NamedTuple):
    """Values of a row of ``FILE_STATE_SCHEMA``, except the path."""

    bytes: int | None = None
    mtime_ns: int | None = None
    hash: str | None = None
    date: datetime | None = None
    width: int | None = None
    height: int | None = None


def _read_files(paths: Sequence[str]) -> list[_FileRow]:
    """Return the state, date, width and height of each image, read by several threads."""
    n_per_thread = -(-len(paths) // READING_THREADS) or 1
    parts = [paths[start : start + n_per_thread] for start in range(0, len(paths), n_per_thread)]
    with image_header_reading(), ThreadPoolExecutor(READING_THREADS) as pool:
        return [
            row for rows in pool.map(lambda part: [*map(_read_file, part)], parts) for row in rows
        ]


def _read_file(path: str) -> _FileRow:
    try:
        status = stored_image_status(path)
        if status is None:
            return _FileRow()
        with open_stored_image(path) as file:
            hash, header = _hash_file(file), read_image_header(file)
    except DataError:
        return _FileRow()
    date = header.date or _local_time(status.mtime_ns)
    return _FileRow(status.size, status.mtime_ns, hash, date, header.width, header.height)


def _hash_file(file: BinaryIO) -> str:
    digest = hashlib.blake2b(digest_size=16)
    while block := file.read(2**18):
        digest.update(block)
    return digest.hexdigest()


def _local_time(mtime_ns: int) -> datetime | None:
    """Return a modification time as local time, or None if it is outside the years 1 to 9999."""
    try:
        return datetime.fromtimestamp(mtime_ns // 10**9)
    except (OverflowError, ValueError, OSError):
        return None
