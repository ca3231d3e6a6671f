"""Lock an index for writing. The operating system releases the lock when the process ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surelabel.errors import DataError
from surelabel.file_locks import lock_open_file

LOCK_FILE = "index.lock"  # never deleted: two processes could lock a file that is recreated


@contextmanager
def lock_index(folder: Path) -> Iterator[None]:
    """Lock an index for writing; create its folder if it does not exist.

    Args:
        folder: Folder of the index.

    Raises:
        DataError: If another process holds the lock, or the folder cannot be written or locked.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK_FILE).open("a")
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written: {error.strerror}. Check the path and its permissions."
        ) from error
    with file:
        try:
            lock_open_file(file.fileno())
        except (BlockingIOError, PermissionError) as error:
            raise DataError(
                f"Another process is writing to {folder}. Run the command again when that process "
                "has finished."
            ) from error
        except OSError as error:
            raise DataError(
                f"{folder} cannot be locked: {error.strerror}. Write the index to a local disk."
            ) from error
        yield
