"""One writer at a time: a lock that the system takes back when its holder ends, however it ends."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surelabel.errors import DataError

LOCK = "index.lock"  # stays where it is: a lock file that is deleted can be held twice

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the lock of an index while it is changed; the folder is made where there is none.

    Raises:
        DataError: another process holds it, or the folder cannot be written or locked.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a")
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror}.") from error
    with file:
        try:
            _take(file.fileno())
        except (BlockingIOError, PermissionError) as error:
            raise DataError(
                f"Another process is writing {folder}: wait for it and run again."
            ) from error
        except OSError as error:
            raise DataError(
                f"{folder} cannot be locked: {error.strerror}. Write the index to a disk of this "
                f"machine."
            ) from error
        yield
