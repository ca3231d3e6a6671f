"""Open images and return their status.

An image is a file, a member of a tar archive, a cell of a Parquet table or an object of a store.
"""

import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import pyarrow.parquet as pq

from surelabel.errors import DataError
from surelabel.file_readers import CHECK_PATH, open_regular_file
from surelabel.storage import object_stores, parquet_images, tar_archives
from surelabel.storage.image_paths import (
    PARQUET_SUFFIX,
    is_object_url,
    is_parquet_path,
    is_tar_path,
    split_container_path,
)

StatusValue = TypeVar("StatusValue")

REQUESTS = 16  # simultaneous requests for the status of many objects


class StoredImageStatus(NamedTuple):
    """Size of the file that contains an image, in bytes, and its modification time.

    The modification time is in nanoseconds since 1970.
    """

    size: int
    mtime_ns: int


class _Archive(NamedTuple):
    """An open tar archive; the state is None for an object, which is examined once per process."""

    path: str
    descriptor: int
    size: int
    state: object


@contextmanager
def open_stored_image(path: str | Path, *, remedy: str = CHECK_PATH) -> Iterator[BinaryIO]:
    """Open an image for reading bytes, without waiting for a named pipe or a device.

    Args:
        path: Path of a file, a member of a tar archive, a cell of a Parquet table or an object.
        remedy: Last sentence of the error message.

    Raises:
        DataError: If the image does not exist or cannot be read. The message is ``PATH cannot be
            read: REASON. REMEDY``.
    """
    text = str(path)
    with ExitStack() as stack:
        try:
            container = _container_of_image(text)
            if container is not None or is_object_url(text):
                stream = _open_content(text, container, stack)
            else:
                stream = stack.enter_context(open_regular_file(text, remedy=remedy))
        except DataError as error:
            if str(error).startswith(f"{text} cannot be read: ") or "NUL byte" in str(error):
                raise
            reason = str(error).rstrip(". ")
            raise DataError(f"{text} cannot be read: {reason}. {remedy}") from error
        yield stream


def stored_image_status(path: str) -> StoredImageStatus | None:
    """Return the status of the file that contains an image, or None if the image does not exist.

    For an image in a container, this is the status of the container.

    Raises:
        DataError: If an object store cannot be read.
    """
    container = _container_of_image(path)
    file = container[0] if container else path
    if container and not _is_in_container(*container):
        return None
    if is_object_url(file):
        status_of_object = object_stores.object_status(file)
        return status_of_object and StoredImageStatus(*status_of_object)
    try:
        status = os.stat(file)
    except (OSError, ValueError):  # ValueError: the path contains a NUL byte
        return None
    is_file = stat.S_ISREG(status.st_mode)
    return StoredImageStatus(status.st_size, status.st_mtime_ns) if is_file else None


def is_stored_image_missing(path: str) -> bool:
    """Return True if there is no file at a path, and False if the path cannot be examined.

    An image at a path that cannot be examined, for example a link to itself or in a damaged
    archive, is skipped later, when the image is read.

    Raises:
        DataError: If an object store cannot be read.
    """
    container = _container_of_image(path)
    if container is not None:
        return not _is_in_container(*container)
    if is_object_url(path):
        return object_stores.object_status(path) is None
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        return False
    return False


def missing_stored_images(paths: Sequence[str]) -> list[int]:
    """Return the indices of the paths without a file; objects are examined in parallel.

    Raises:
        DataError: If an object store cannot be read.
    """
    is_missing = _map_stored_images(is_stored_image_missing, paths)
    return [row for row, missing in enumerate(is_missing) if missing]


def stored_image_statuses(paths: Sequence[str]) -> list[StoredImageStatus | None]:
    """Return the status of each image; objects are examined in parallel.

    Raises:
        DataError: If an object store cannot be read.
    """
    return list(_map_stored_images(stored_image_status, paths))


def read_tar_contents(path: str) -> tar_archives.TarContents:
    """Return the names of the members of a tar archive, and the positions of their contents.

    The positions are stored in the cache of this process.

    Args:
        path: Path or URL of the archive.

    Raises:
        DataError: If the archive cannot be read, is compressed, truncated or damaged, or if the
            name of a member is absolute or contains ``..``.
    """
    with _open_archive(path) as archive:
        return _read_archive(archive)


def open_parquet_table(path: str) -> pq.ParquetFile:
    """Open a Parquet table at a path or URL without reading rows.

    Raises:
        DataError: If the file cannot be read or is not a Parquet table.
    """
    source, _ = _parquet_source(path)
    return parquet_images.open_parquet_file(path, source())


def _map_stored_images(
    function: Callable[[str], StatusValue], paths: Sequence[str]
) -> Iterable[StatusValue]:
    """Apply a function to each path, in several threads if a path is the URL of an object."""
    if not any(map(is_object_url, paths)):
        return map(function, paths)
    with ThreadPoolExecutor(REQUESTS) as pool:
        return list(pool.map(function, paths))


def _container_of_image(path: str) -> tuple[str, str] | None:
    """Return the container file of an image and the rest of the path, or None."""
    if is_object_url(path):
        return split_container_path(path, is_file=object_stores.is_cached_object_file)
    return split_container_path(path)


def _is_in_container(file: str, rest: str) -> bool:
    """Return whether a container has a member or row; return True if the container is damaged."""
    try:
        if is_tar_path(file):
            with _open_archive(file) as archive:
                return _member_of_archive(archive, rest) is not None
        cell = _column_and_row(rest)
        return cell is not None and cell[1] < _cached_parquet_images(file, cell[0]).n_rows
    except DataError:
        return True


def _open_content(path: str, container: tuple[str, str] | None, stack: ExitStack) -> BinaryIO:
    """Return a stream of a member, a cell or an object.

    Raises:
        DataError: If the image cannot be read. The message contains only the reason.
    """
    if container is None:
        return BytesIO(object_stores.read_object(path))
    file, rest = container
    if is_parquet_path(file):
        cell = _column_and_row(rest)
        if cell is None:
            raise DataError(f"the path must have the form TABLE{PARQUET_SUFFIX}/COLUMN/ROW")
        return BytesIO(_cached_parquet_images(file, cell[0]).cell(cell[1]))
    archive = stack.enter_context(_open_archive(file))
    member = _member_of_archive(archive, rest)
    if member is None:
        raise DataError("the archive has no member with this name")
    return tar_archives.open_tar_member(archive.descriptor, member)


@contextmanager
def _open_archive(path: str) -> Iterator[_Archive]:
    """Open a tar archive; an object is copied to a temporary file."""
    if is_object_url(path):
        copy = object_stores.spooled_object(path)
        yield _Archive(path, copy.descriptor, os.fstat(copy.descriptor).st_size, None)
        return
    with open_regular_file(path) as stream:
        status = os.fstat(stream.fileno())
        state = (status.st_size, status.st_mtime_ns, status.st_ino)
        yield _Archive(path, stream.fileno(), status.st_size, state)


def _read_archive(archive: _Archive) -> tar_archives.TarContents:
    whole = tar_archives.TarMember(archive.path, 0, archive.size)
    stream = tar_archives.open_tar_member(archive.descriptor, whole)
    return tar_archives.cache_tar_contents(archive.path, stream, archive.state)


def _member_of_archive(archive: _Archive, name: str) -> tar_archives.TarMember | None:
    index = tar_archives.cached_tar_index(archive.path, archive.state)
    if index is None:
        index = _read_archive(archive).index
    return index.find(posixpath.normpath(name))


def _parquet_source(path: str) -> tuple[Callable[[], Any], object]:
    """Return a function that opens a Parquet table, and the state of the table."""
    if is_object_url(path):
        return lambda: object_stores.open_object(path), None
    with open_regular_file(path) as stream:
        status = os.fstat(stream.fileno())
    return lambda: path, (status.st_size, status.st_mtime_ns, status.st_ino)


def _cached_parquet_images(path: str, column: str) -> parquet_images.ParquetImages:
    source, state = _parquet_source(path)
    return parquet_images.cached_parquet_images(path, source, column, state)


def _column_and_row(rest: str) -> tuple[str, int] | None:
    """Return the column and the row of ``COLUMN/ROW``, or None if the text has another form."""
    column, _, row = rest.rpartition("/")
    return (column, int(row)) if column and row.isascii() and row.isdecimal() else None
