"""Check which files a server may read, and open them.

A client names an image by its identifier in the index, never by a path. The file is read in two
cases:

- The path is in the root of the index, and the file is in the root after all symbolic links are
  resolved.
- The path is outside of the root, as the index stores it, and contains no symbolic link.

For a member of a tar archive or a cell of a Parquet table, the rule applies to the archive or the
table. An indexed URL of an object store is read with the credentials of the server.
"""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from surelabel.errors import DataError
from surelabel.storage.image_paths import is_object_url, split_container_path

_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)


def resolve_servable_file(path: str, root: str) -> str:
    """Return the path of an indexed image after all symbolic links are resolved.

    The URL of an object is returned unchanged. Of an image in a container, only the path of the
    container is resolved.

    Args:
        path: Absolute path of an indexed image, or URL of an object.
        root: Absolute path of the root of the index.

    Raises:
        DataError: If there is no file, or the file must not be read. The message contains no path.
    """
    if is_object_url(path):
        return path
    container = split_container_path(path)
    file = path if container is None else container[0]
    real_path, real_root = os.path.realpath(file), os.path.realpath(root)
    is_in_root = _is_in_folder(file, root) and _is_in_folder(real_path, real_root)
    if not is_in_root and real_path != file:
        raise DataError(
            "The path contains a symbolic link out of the root of the index, or outside of it, so "
            "the file is not served."
        )
    if not _is_regular_file(real_path):
        raise DataError("The file does not exist, or is not a regular file.")
    return real_path if container is None else os.path.join(real_path, container[1])


def is_plain_file(path: str) -> bool:
    """Return whether a path is that of a file, not of an object or an image in a container."""
    return not is_object_url(path) and split_container_path(path) is None


@contextmanager
def open_servable_file(real_path: str) -> Iterator[tuple[BinaryIO, os.stat_result]]:
    """Open a file without following symbolic links, and yield the stream and its status.

    On Linux, the path of the opened file is compared with the resolved path, so that a link that
    replaces a folder in between is detected.

    Args:
        real_path: Result of `resolve_servable_file` for a file.

    Raises:
        DataError: If the file cannot be opened, or another file was opened.
    """
    try:
        stream = os.fdopen(os.open(real_path, _OPEN_FLAGS), "rb")
    except OSError as error:
        raise DataError("The file does not exist, or cannot be opened.") from error
    with stream:
        status = os.fstat(stream.fileno())
        is_other = sys.platform == "linux" and (
            os.readlink(f"/proc/self/fd/{stream.fileno()}") != real_path
        )
        if is_other or not stat.S_ISREG(status.st_mode):
            raise DataError("The file was replaced while it was opened.")
        yield stream, status


def _is_in_folder(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _is_regular_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
