"""Create temporary folders for the files of Ray, and delete folders that killed processes left.

    ray-RANDOM/
        surelabel.lock    locked while the process that created the folder runs
        session_*         files of Ray

The operating system releases the lock when the process ends, for any reason.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from surelabel.file_locks import lock_open_file

LOCK_FILE = "surelabel.lock"
_PREFIX = "ray-"  # short, because the paths of sockets have at most 107 bytes


@contextmanager
def temporary_ray_folder(parent: str | Path) -> Iterator[Path]:
    """Yield a new folder for the files of Ray, and delete it at the end.

    Folders of the same user that killed processes left in ``parent`` are deleted first.

    Args:
        parent: Folder for temporary files, which is created if it is missing.
    """
    os.makedirs(parent, exist_ok=True)
    delete_abandoned_ray_folders(parent)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    descriptor = None
    try:
        with suppress(OSError):  # without locks, the folder of a killed process remains
            descriptor = _create_locked_file(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def delete_abandoned_ray_folders(parent: str | Path) -> None:
    """Delete the folders of :func:`temporary_ray_folder` whose processes have ended.

    Folders of other users and of other programs remain.

    Args:
        parent: Folder for temporary files.
    """
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _delete_if_abandoned(Path(entry.path))


def _create_locked_file(folder: Path) -> int:
    """Create a lock file, and return its descriptor; the file appears when it is locked."""
    temporary = folder / f".{LOCK_FILE}"
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        lock_open_file(descriptor)
        temporary.rename(folder / LOCK_FILE)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _delete_if_abandoned(folder: Path) -> None:
    """Delete a folder whose lock file is not locked, unless it belongs to another user.

    The lock file is deleted last, so that an incomplete deletion is repeated later.

    Raises:
        OSError: If the folder belongs to a running process, has no lock file, or contains a file
            that cannot be deleted.
    """
    if hasattr(os, "getuid") and folder.lstat().st_uid != os.getuid():
        return
    lock_file = folder / LOCK_FILE
    descriptor = os.open(lock_file, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        lock_open_file(descriptor)
        for path in folder.iterdir():
            if path.name != LOCK_FILE:
                shutil.rmtree(path, ignore_errors=True)
                path.unlink(missing_ok=True)
        lock_file.unlink()
        folder.rmdir()
    finally:
        os.close(descriptor)
