"""Create temporary paths for atomic writes, and delete the temporary paths of killed processes.

.NAME.TOKEN.new     temporary folder of the new file, or the new folder
.NAME.TOKEN.old     previous folder, between two renames, if folders cannot be exchanged

TOKEN is random. In surelabel 0.1.0, TOKEN is the identifier of the process.
"""

import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from surelabel.errors import DataError
from surelabel.file_locks import PathLock, lock_path

MAX_AGE = 24 * 60 * 60  # seconds; older temporary paths belong to no running process
MAX_NAMES = 2000  # maximum number of names in a folder that each write reads

_TOKEN_BYTES = 4
_LEFTOVER = re.compile(
    r"\.(?P<name>.+)\.(?P<token>[0-9a-f]{8}|[0-9]{1,7})\.(?P<kind>new|old)", re.DOTALL
)
_LOCK_FILE = re.compile(r"\.(?P<name>.+)\.lock", re.DOTALL)
_ANY_LEFTOVER = re.compile(  # in surelabel 0.1.0, safetensors left .tmp files
    rf"{_LEFTOVER.pattern}|\.tmp\w{{6}}", re.DOTALL
)


@contextmanager
def temporary_folder_beside(target: Path) -> Iterator[Path]:
    """Yield a new folder beside ``target``, and delete what is at its path at the end."""
    folder = target.parent / f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}.new"
    try:
        folder.mkdir()
        yield folder
    finally:
        delete_path(folder)


def delete_path(path: Path) -> None:
    """Delete a file, a symbolic link or a folder, as far as the permissions allow."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def previous_folders(target: Path) -> list[Path]:
    """Return previous versions of the folder ``target``, the newest last.

    There is a previous version only while the folder is replaced by two renames, or if the process
    was killed between them.
    """
    paths = [path for path in _leftovers_of(target) if path.suffix == ".old"]
    return sorted(paths, key=_age_of_leftover, reverse=True)


def delete_leftovers_beside(target: Path, lock: PathLock) -> None:
    """Delete the temporary paths of ``target`` that killed processes left.

    If ``target`` is locked, no other process writes ``target``, except a process of version 0.1.0.
    The paths of such a process, and all paths without a lock, are deleted only if they are older
    than a day. If the lock was not abandoned, only ``MAX_NAMES`` names of the folder are read,
    because a folder can contain many files.

    Args:
        target: Absolute path of a file or folder to write.
        lock: Lock of ``target``.
    """
    for path in _leftovers_of(target, None if lock.is_abandoned else MAX_NAMES):
        is_old = _age_of_leftover(path) >= MAX_AGE
        if is_old or (lock.is_held and not _has_process_of_0_1_0(path)):
            delete_path(path)


def delete_leftovers_in(folder: Path, *, min_age: float = MAX_AGE) -> None:
    """Delete temporary paths of all files in a folder that contains only files of this package.

    The lock files of killed processes are deleted too, with the temporary paths of the same file.

    Args:
        folder: Folder, which need not exist.
        min_age: Minimum age in seconds of the paths to delete. Newer paths can belong to a running
            process.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
        for name in names:
            if match := _LOCK_FILE.fullmatch(name):
                _delete_abandoned_lock(Path(os.path.abspath(folder), match["name"]))
            elif _ANY_LEFTOVER.fullmatch(name):
                path = Path(folder, name)
                if _age_of_leftover(path) >= min_age:
                    delete_path(path)


def _delete_abandoned_lock(target: Path) -> None:
    """Delete the lock file and the temporary paths of ``target``, unless a process locks it."""
    with suppress(DataError), lock_path(target, max_wait=0.0) as lock:
        if lock.is_abandoned:
            delete_leftovers_beside(target, lock)


def _leftovers_of(target: Path, max_names: int | None = None) -> list[Path]:
    """Return the temporary paths of ``target``, among the first ``max_names`` names."""
    try:
        with os.scandir(target.parent) as entries:
            names = [entry.name for entry in islice(entries, max_names)]
    except OSError:
        return []
    matches = ((name, _LEFTOVER.fullmatch(name)) for name in names if name.startswith("."))
    return [target.parent / name for name, m in matches if m and m["name"] == target.name]


def _age_of_leftover(path: Path) -> float:
    """Return the time since the last change of a path in seconds; 0 if it was deleted meanwhile."""
    try:
        return time.time() - path.lstat().st_mtime
    except OSError:
        return 0.0


def _has_process_of_0_1_0(path: Path) -> bool:
    """Return whether a process of surelabel 0.1.0 can still be writing a temporary path."""
    match = _LEFTOVER.fullmatch(path.name)
    assert match is not None
    if len(match["token"]) == 2 * _TOKEN_BYTES or int(match["token"]) == os.getpid():
        return False
    if sys.platform == "win32":  # os.kill would end the process
        return True
    try:
        os.kill(int(match["token"]), 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
