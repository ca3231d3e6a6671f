"""Write files and folders atomically, to a temporary path that is then renamed."""

import ctypes
import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from safetensors import SafetensorError

from surelabel.errors import DataError
from surelabel.file_locks import lock_path
from surelabel.leftover_files import (
    delete_leftovers_beside,
    previous_folders,
    temporary_folder_beside,
)

_UMASK = os.umask(0)
os.umask(_UMASK)
_MODE = 0o666 & ~_UMASK  # some writers create files that only their owner can read
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # constants of Linux
_Content = TypeVar("_Content")
FileVersion = tuple[int, int, int]


def file_version(status: os.stat_result) -> FileVersion:
    """Return inode number, modification time and size of a file.

    At least one of these numbers changes when the file is written or replaced.

    Args:
        status: Result of ``os.stat``, ``os.lstat`` or ``os.fstat``.
    """
    return status.st_ino, status.st_mtime_ns, status.st_size


def escape_non_utf8_file_path(path: str) -> str:
    """Return a path in which bytes that are not valid UTF-8 are replaced by escape sequences.

    On Unix, a path can contain any bytes. Python represents bytes that are not valid UTF-8 as
    surrogates.

    Example:
        >>> escape_non_utf8_file_path("caf\\udce9.jpg")
        'caf\\\\udce9.jpg'
    """
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def check_writable_file_paths(paths: Iterable[str], *, forbidden: str = "") -> None:
    """Check that image paths can be written to a text file and read again.

    Args:
        paths: Paths of images, or identifiers of rows.
        forbidden: Further characters that a path must not contain, such as line breaks.

    Raises:
        DataError: If a path has bytes that are not valid UTF-8, or a forbidden character.
    """
    for path in paths:
        is_utf8 = escape_non_utf8_file_path(path) == path
        if not is_utf8 or any(sign in path for sign in forbidden):
            raise DataError(
                "The path of an image in an annotation file must be valid UTF-8"
                f"{' without line breaks' if forbidden else ''}; got "
                f"{escape_non_utf8_file_path(path)!r}. Rename the image file."
            )


def check_folder_is_replaceable(folder: str | Path) -> None:
    """Raise an error if ``folder`` is the current folder or contains the current folder.

    If the current folder of a process is replaced, the process remains in the deleted folder.

    Raises:
        DataError: If the current folder is ``folder`` or is inside ``folder``.
    """
    if Path.cwd().is_relative_to(Path(folder).resolve()):
        raise DataError(
            f"The new folder must not contain the current folder; got {folder}. "
            "Give another path, such as a new folder inside the current folder."
        )


@contextmanager
def atomic_file(path: str | Path, *, mode: int | None = None) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` if the ``with`` block raises no error.

    Missing parent folders are created. Processes and threads that write the same path wait for each
    other. The temporary files of a killed process are deleted by the next write of the same path.

    Args:
        path: Path of the file.
        mode: Permission bits of the file. If None, the default bits of a new file are used.

    Raises:
        DataError: If the file cannot be written, for example because the disk is full, or if
            another process writes the file for more than a minute. An existing file remains
            unchanged.
    """
    with _lock_target(path) as target, temporary_folder_beside(target) as folder:
        temporary = folder / target.name
        yield temporary
        _sync_file_to_disk(temporary, _MODE if mode is None else mode)
        temporary.replace(target)
        _sync_folder_to_disk(target.parent)


@contextmanager
def atomic_new_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to ``path`` at the end, without a lock.

    No other process or thread may write the same path. This function is faster than
    :func:`atomic_file`, because it needs no lock. After a power failure, the file is either
    complete or missing.

    Raises:
        DataError: If the file cannot be written.
    """
    target = Path(os.path.abspath(path))
    with _write_errors_as_data_errors(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder_beside(target) as folder:
            temporary = folder / target.name
            yield temporary
            _sync_file_to_disk(temporary)
            temporary.replace(target)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces ``path`` if the ``with`` block raises no error.

    An existing folder at ``path`` remains until the new folder is complete. Where the file system
    supports it, both folders are exchanged in one operation. Otherwise, there are two renames. If
    the process is killed between the two renames, ``restore_folder`` or the next write completes
    the replacement. Processes and threads that write the same path wait for each other.

    Raises:
        DataError: If the folder cannot be written, for example because the disk is full. If the
            current folder is inside ``path``. If another process writes the folder for more than a
            minute. An existing folder remains unchanged.
    """
    check_folder_is_replaceable(path)
    with _lock_target(path) as target, temporary_folder_beside(target) as temporary:
        try:
            yield temporary
        except DataError as error:  # the message can contain the path of a temporary file
            if str(temporary) not in str(error):
                raise
            raise DataError(str(error).replace(str(temporary), str(path))) from error
        _sync_folder_tree_to_disk(temporary)
        _replace_folder(temporary, target)
        _sync_folder_to_disk(target.parent)


def restore_folder(path: str | Path) -> None:
    """Restore the folder ``path`` if a process was killed while replacing the folder.

    If ``path`` exists, or there is no previous version of the folder, change nothing.

    Raises:
        DataError: If the previous version cannot be renamed.
    """
    target = Path(os.path.abspath(path))
    if not os.path.lexists(target) and previous_folders(target):
        with _lock_target(path):  # waits for a running process, and restores the folder
            pass


def read_replaceable_folder(path: str | Path, read: Callable[[], _Content]) -> _Content:
    """Return the result of ``read``, which reads a folder; repeat ``read`` after a replacement.

    Another process can replace the folder while its files are read one after the other.

    Args:
        path: Path of a folder that :func:`atomic_folder` writes.
        read: Function that reads all files of the folder. It raises DataError if files of different
            versions do not match.

    Raises:
        DataError: If ``read`` raises the error, and the folder was not replaced meanwhile.
    """
    while True:
        restore_folder(path)
        identity = _folder_identity(path)
        try:
            return read()
        except DataError:
            if _folder_identity(path) == identity:
                raise


@contextmanager
def _lock_target(path: str | Path) -> Iterator[Path]:
    """Lock ``path``, and yield its absolute path.

    A folder that a killed process was replacing is restored, and the temporary files of killed
    processes are deleted. Missing parent folders are created.
    """
    target = Path(os.path.abspath(path))  # the lock file needs a name, which "." and ".." lack
    with _write_errors_as_data_errors(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        with lock_path(target) as lock:
            if not os.path.lexists(target):
                for previous in previous_folders(target)[-1:]:
                    previous.replace(target)
            delete_leftovers_beside(target, lock)
            yield target


def _replace_folder(new: Path, target: Path) -> None:
    """Move the folder ``new`` to ``target``; the previous content of ``target`` moves to ``new``.

    A folder with the suffix ``.old`` must remain complete, so that it can be restored. Therefore,
    the caller deletes the previous content only under the name ``new``.
    """
    if not os.path.lexists(target):
        new.replace(target)
    elif not _exchange_paths(new, target):
        previous = new.with_suffix(".old")
        target.replace(previous)
        try:
            new.replace(target)
        except OSError:
            previous.replace(target)
            raise
        previous.replace(new)


def _exchange_paths(first: Path, second: Path) -> bool:
    """Exchange two existing paths in one operation; return False if this is not possible."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):  # the C library has no renameat2
        return False
    paths = os.fsencode(first), os.fsencode(second)
    result: int = rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE)
    return result == 0


def _folder_identity(path: str | Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns  # inode numbers are reused


def _sync_folder_tree_to_disk(folder: Path) -> None:
    for root, _, names in os.walk(folder):
        for name in names:
            _sync_file_to_disk(Path(root, name))
        _sync_folder_to_disk(Path(root))


def _sync_file_to_disk(file: Path, mode: int = _MODE) -> None:
    file.chmod(mode)
    with file.open("rb") as stream:
        os.fsync(stream.fileno())


def _sync_folder_to_disk(folder: Path) -> None:
    """Write the names in a folder to the disk, if the file system supports this."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _write_errors_as_data_errors(path: str | Path) -> Iterator[None]:
    try:
        yield
    except (OSError, SafetensorError) as error:
        number = _error_number(error)
        reason = os.strerror(number) if number else str(error)
        is_full = number in (errno.ENOSPC, errno.EDQUOT)
        remedy = " Free disk space, or give a path on another disk." if is_full else ""
        raise DataError(f"{path} cannot be written: {reason}.{remedy}") from error


def _error_number(error: OSError | SafetensorError) -> int | None:
    """Return the error number of the operating system, which safetensors reports only as text."""
    if isinstance(error, OSError):
        return error.errno
    match = re.search(r"os error (\d+)", str(error))
    return int(match[1]) if match else None


def check_is_new_file(path: str | Path) -> None:
    """Check that a file of annotations does not exist, so that no annotations are replaced.

    Args:
        path: Path of the file.

    Raises:
        DataError: If the file exists.
    """
    if os.path.lexists(path):
        raise DataError(
            f"{path} must be a new file, because an existing file may contain annotations. Give "
            "another path, or remove the file."
        )
