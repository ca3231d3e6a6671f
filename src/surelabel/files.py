"""Atomic writing of files and folders: temporary path, fsync, then rename."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from surelabel.errors import DataError

_UMASK = os.umask(0)
os.umask(_UMASK)
_MODE = 0o666 & ~_UMASK  # some writers create files that only their owner can read


def escape_non_utf8(path: str) -> str:
    """Return ``path`` with the bytes that are not valid UTF-8 written as escape sequences.

    Unix allows any bytes in a path; Python represents invalid ones as surrogates.

    Example:
        >>> escape_non_utf8("caf\\udce9.jpg")
        'caf\\\\udce9.jpg'
    """
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def check_folder_is_replaceable(folder: str | Path) -> None:
    """Raise an error if ``folder`` is the current folder or contains it.

    A process whose current folder is replaced would remain in the deleted one.

    Raises:
        DataError: If the current folder is ``folder`` or lies inside it.
    """
    if Path.cwd().is_relative_to(Path(folder).resolve()):
        raise DataError(
            f"The new folder must not contain the current folder; got {folder}. "
            "Give another path, such as a new folder inside the current one."
        )


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` if the block raises no error.

    Raises:
        DataError: If the file cannot be written; an existing file stays unchanged.
    """
    target = Path(os.path.abspath(path))  # "." and ".." have no name for a neighbouring file
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _sync_to_disk(temporary)
        temporary.replace(target)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {_os_error_reason(error)}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces ``path`` if the block raises no error.

    An existing folder of that name stays in place until the new one is complete.

    Raises:
        DataError: If the folder cannot be written, or if the current folder lies inside
            ``path``; an existing folder stays unchanged.
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
                _sync_to_disk(file)
        if target.exists():
            target.replace(previous)
        temporary.replace(target)
    except OSError as error:
        if previous.exists() and not target.exists():
            previous.replace(target)
        raise DataError(f"{path} cannot be written: {_os_error_reason(error)}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(previous, ignore_errors=True)


def _sync_to_disk(file: Path) -> None:
    file.chmod(_MODE)
    with file.open("rb") as stream:
        os.fsync(stream.fileno())


def _os_error_reason(error: OSError) -> str:
    return error.strerror or str(error)
