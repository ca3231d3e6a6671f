"""Writing that never leaves half a file: a temporary name, fsync, then a rename."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from surelabel.errors import DataError

_UMASK = os.umask(0)
os.umask(_UMASK)
_MODE = 0o666 & ~_UMASK  # some writers leave files that only their owner can read


@contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; it takes the name of ``path`` when all went well.

    Raises:
        DataError: the place cannot be written. What was there before is untouched.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _settle(temporary)
        temporary.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {_reason(error)}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """Give a temporary folder beside ``path``; it takes that name when all went well.

    An older folder of that name stays until the new one is whole.

    Raises:
        DataError: the place cannot be written. What was there before is untouched.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _settle(file)
        if path.exists():
            path.replace(old)
        temporary.replace(path)
    except OSError as error:
        if old.exists() and not path.exists():
            old.replace(path)
        raise DataError(f"{path} cannot be written: {_reason(error)}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _settle(file: Path) -> None:
    file.chmod(_MODE)
    with file.open("rb") as written:
        os.fsync(written.fileno())


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
