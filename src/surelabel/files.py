"""Atomic writing of files and folders: they are written to a temporary path and then renamed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from surelabel.errors import DataError

_UMASK = os.umask(0)
os.umask(_UMASK)
_MODE = 0o666 & ~_UMASK  # some writers create files that only their owner can read


def escape_non_utf8_file_path(path: str) -> str:
    """Return a path in which bytes that are not valid UTF-8 are replaced by escape sequences.

    On Unix, a path can contain any bytes. Python represents bytes that are not valid UTF-8 as
    surrogates.

    Example:
        >>> escape_non_utf8_file_path("caf\\udce9.jpg")
        'caf\\\\udce9.jpg'
    """
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


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
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` if the ``with`` block raises no error.

    Raises:
        DataError: If the file cannot be written. An existing file remains unchanged.
    """
    target = Path(os.path.abspath(path))  # "." and ".." have no name for a neighbouring file
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _sync_file_to_disk(temporary)
        temporary.replace(target)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {_file_error_reason(error)}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces ``path`` if the ``with`` block raises no error.

    An existing folder at ``path`` remains until the new folder is complete.

    Raises:
        DataError: If the folder cannot be written, or if the current folder is inside ``path``. An
            existing folder remains unchanged.
    """
    check_folder_is_replaceable(path)
    target = Path(os.path.abspath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    previous = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _sync_file_to_disk(file)
        if target.exists():
            target.replace(previous)
        temporary.replace(target)
    except OSError as error:
        if previous.exists() and not target.exists():
            previous.replace(target)
        raise DataError(f"{path} cannot be written: {_file_error_reason(error)}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(previous, ignore_errors=True)


def _sync_file_to_disk(file: Path) -> None:
    file.chmod(_MODE)
    with file.open("rb") as stream:
        os.fsync(stream.fileno())


def _file_error_reason(error: OSError) -> str:
    return error.strerror or str(error)
