"""Lock files that are being written. The operating system releases a lock when a process ends.

A lock excludes other threads and other processes, also processes on other machines that share the
disk.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from surelabel.errors import DataError

MAX_WAIT_SECONDS = 60.0  # time to wait for another writer of the same path
POLL_SECONDS = 0.01  # time between two attempts to lock
MAX_MISSING = 1000  # attempts to open a lock file that its owner deletes at the same time

if sys.platform == "win32":
    import msvcrt

    def lock_open_file(descriptor: int) -> None:
        """Lock an open file without waiting.

        Raises:
            PermissionError: If another process or thread holds the lock.
            OSError: If the file system does not support locks.
        """
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock_open_file(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def lock_open_file(descriptor: int) -> None:
        """Lock an open file without waiting.

        Raises:
            BlockingIOError: If another process or thread holds the lock.
            OSError: If the file system does not support locks.
        """
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock_open_file(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class PathLock(NamedTuple):
    """Result of an attempt to lock a path.

    Attributes:
        is_held: Whether the path is locked. If False, the file system does not support locks, or
            the lock file cannot be created.
        is_abandoned: Whether an earlier process ended without releasing the lock.
    """

    is_held: bool
    is_abandoned: bool


@contextmanager
def lock_path(path: Path, *, max_wait: float | None = None) -> Iterator[PathLock]:
    """Lock a path for writing, with the lock file ``.NAME.lock`` beside the path.

    The path itself need not exist. The lock file is deleted at the end. If no lock can be created,
    for example because the file system does not support locks, the block runs without a lock.

    Args:
        path: Absolute path of the file or folder to write.
        max_wait: Time to wait for another process or thread that holds the lock, in seconds. If
            None, the time is ``MAX_WAIT_SECONDS``.

    Raises:
        DataError: If another process or thread holds the lock for longer than ``max_wait``.
    """
    lock_file = path.parent / f".{path.name}.lock"
    seconds = MAX_WAIT_SECONDS if max_wait is None else max_wait
    descriptor, is_abandoned = _acquire_path_lock(path, lock_file, seconds)
    if descriptor is None:
        yield PathLock(is_held=False, is_abandoned=False)
        return
    try:
        yield PathLock(is_held=True, is_abandoned=is_abandoned)
    finally:
        with suppress(OSError):  # Windows cannot delete an open file; the next lock uses the file
            lock_file.unlink()
        with suppress(OSError):  # a forked process can share the descriptor
            _unlock_open_file(descriptor)
        os.close(descriptor)


def _acquire_path_lock(path: Path, lock_file: Path, max_wait: float) -> tuple[int | None, bool]:
    """Return the descriptor of the locked lock file, and whether the lock file existed before.

    A waiting process can lock a file that its owner has deleted. Therefore, the lock is valid only
    if the path of the lock file still refers to the locked file.
    """
    deadline, n_missing = time.monotonic() + max_wait, 0
    while True:
        try:
            descriptor, is_new = _open_lock_file(lock_file)
        except FileNotFoundError:
            n_missing += 1
            if n_missing > MAX_MISSING or not lock_file.parent.is_dir():
                return None, False  # also if no file can be created in the folder, as in /proc
            continue  # the owner deleted the lock file meanwhile
        except OSError:
            return None, False
        try:
            lock_open_file(descriptor)
            if _is_current_lock_file(descriptor, lock_file):
                return descriptor, not is_new
            os.close(descriptor)
        except (BlockingIOError, PermissionError) as error:
            os.close(descriptor)
            if time.monotonic() >= deadline:
                raise DataError(
                    f"{path} cannot be written: another process or thread has locked this path for "
                    f"more than {max_wait:.0f} seconds. Try again after the other process "
                    "has finished."
                ) from error
            time.sleep(POLL_SECONDS)
        except OSError:
            os.close(descriptor)
            if is_new:
                lock_file.unlink(missing_ok=True)
            return None, False


def _open_lock_file(lock_file: Path) -> tuple[int, bool]:
    """Return a descriptor of the lock file, and whether the lock file is new."""
    try:
        return os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
    except FileExistsError:
        return os.open(lock_file, os.O_RDWR), False


def _is_current_lock_file(descriptor: int, lock_file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(lock_file))
    except FileNotFoundError:
        return False
