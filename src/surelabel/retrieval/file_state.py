"""Size, modification time and content hash of indexed files, to detect changed files."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from surelabel.errors import DataError, InputError
from surelabel.storage.image_paths import absolute_image_path
from surelabel.storage.stored_images import (
    StoredImageStatus,
    open_stored_image,
    stored_image_status,
)

FILE_STATE_SCHEMA = pa.schema(
    {"path": pa.string(), "bytes": pa.int64(), "mtime_ns": pa.int64(), "hash": pa.string()}
)


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
    """Return whether a path is valid Unicode; Unix also permits other file names."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_file_state(path: str) -> FileState | None:
    """Return the current state of a file, or None if the file cannot be read.

    Size and modification time are read before the content. If the file changes at the same time,
    the recorded modification time is too old, and the file is hashed again by the next comparison.
    """
    try:
        status = stored_image_status(path)
        if status is None:
            return None
        with open_stored_image(path) as file:
            digest = hashlib.blake2b(digest_size=16)
            while block := file.read(2**18):
                digest.update(block)
    except DataError:
        return None
    return FileState(status.size, status.mtime_ns, digest.hexdigest())


def file_state_table(paths: Sequence[str], hashes: Sequence[str] | None = None) -> pa.Table:
    """Return a table with the absolute path and file state of each image.

    If a file cannot be read, its size and modification time are null. Its hash is also null, unless
    ``hashes`` is given.

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
            f"Paths must be valid Unicode to be stored; got {invalid_paths[0]!r}. Rename that file."
        )
    states = [read_file_state(path) for path in paths]
    if hashes is not None:
        states = [
            _file_state_with_hash(state, hash) for state, hash in zip(states, hashes, strict=True)
        ]
    column = pa.array(paths, pa.string())
    if len(column.unique()) < len(column):
        duplicate = next(path for path, count in Counter(paths).items() if count > 1)
        raise InputError(
            f"Each image must occur once in an index; got {duplicate!r} twice. Remove one of the "
            f"two paths."
        )
    fields = [
        [state and getattr(state, name) for state in states] for name in FILE_STATE_SCHEMA.names[1:]
    ]
    return pa.table([column, *fields], schema=FILE_STATE_SCHEMA)


def replace_file_state_paths(table: pa.Table, paths: Sequence[str]) -> pa.Table:
    """Return a table of file states with other paths, one for each row."""
    return table.set_column(0, FILE_STATE_SCHEMA.field("path"), pa.array(paths, pa.string()))


def describe_file_state_change(
    path: str, recorded: FileState | None, status: StoredImageStatus
) -> str | None:
    """Return the reason why a file is considered changed, or None if the file is unchanged.

    If size and modification time equal the recorded values, the file is unchanged. Otherwise the
    content hashes are compared. A file with a new modification time but equal content is unchanged.

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
    return None if current.hash == recorded.hash else "the content changed after the prediction"


def _file_state_with_hash(current: FileState | None, hash: str) -> FileState:
    """Return the current state if its content hash is ``hash``, else a state with only ``hash``."""
    return current if current and current.hash == hash else FileState(None, None, hash)
