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


def utf8(path: str) -> str:
    """A path that is no text, as Unix allows, with its odd bytes written out.

    Example:
        >>> utf8("caf\\udce9.jpg")
        'caf\\\\udce9.jpg'
    """
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def check_replaceable(folder: str | Path) -> None:
    """Refuse the current folder and those around it, which a new one must not replace.

    Whoever stands in a folder that is replaced stays behind in the old one, which is gone.

    Raises:
        DataError: the current folder is ``folder``, or lies in it.
    """
    if Path.cwd().is_relative_to(Path(folder).resolve()):
        raise DataError(
            f"{folder} cannot be replaced by a new folder: the current folder is in it. Name "
            "another one, such as a new folder here."
        )


@contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; it takes the name of ``path`` when all went well.

    Raises:
        DataError: the place cannot be written. What was there before is untouched.
    """
    place = Path(os.path.abspath(path))  # "." and ".." have no name that others can go beside
    temporary = place.with_name(f".{place.name}.{os.getpid()}.new")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _settle(temporary)
        temporary.replace(place)
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
        DataError: the place cannot be written, or the current folder is in it. What was there
            before is untouched.
    """
    check_replaceable(path)
    place = Path(os.path.abspath(path))
    temporary = place.with_name(f".{place.name}.{os.getpid()}.new")
    old = place.with_name(f".{place.name}.{os.getpid()}.old")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _settle(file)
        if place.exists():
            place.replace(old)
        temporary.replace(place)
    except OSError as error:
        if old.exists() and not place.exists():
            old.replace(place)
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
