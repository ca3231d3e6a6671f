import errno
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from surelabel import file_locks
from surelabel.errors import DataError
from surelabel.file_locks import PathLock, lock_path

HOLDER = """
import sys
from pathlib import Path
from surelabel.file_locks import lock_path
with lock_path(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""
COUNTER = """
import sys
from pathlib import Path
from surelabel.file_locks import lock_path
file = Path(sys.argv[1])
for _ in range(30):
    with lock_path(file):
        file.write_text(str(int(file.read_text()) + 1))
"""


def test_threads_and_processes_exclude_each_other_and_leave_no_lock_file(tmp_path):
    file = tmp_path / "count"
    file.write_text("0")

    def count(_):
        for _ in range(12):
            with lock_path(file):
                number = int(file.read_text())
                time.sleep(0)
                file.write_text(str(number + 1))

    command = [sys.executable, "-c", COUNTER, str(file)]
    with subprocess.Popen(command) as other, ThreadPoolExecutor(8) as threads:
        list(threads.map(count, range(8)))
        assert other.wait() == 0
    assert file.read_text() == str(8 * 12 + 30)
    assert [p.name for p in tmp_path.iterdir()] == ["count"]


def test_the_lock_of_a_killed_process_is_abandoned_and_that_of_a_live_one_is_waited_for(
    tmp_path, monkeypatch
):
    path = tmp_path / "a"
    monkeypatch.setattr(file_locks, "MAX_WAIT_SECONDS", 0.05)
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        waited = "a cannot be written: another process or thread has locked .* than 0 seconds"
        with pytest.raises(DataError, match=waited):
            lock_path(path).__enter__()
        holder.send_signal(signal.SIGKILL)
    for is_abandoned in (True, False):
        with lock_path(path) as lock:
            assert lock == PathLock(is_held=True, is_abandoned=is_abandoned)
    assert list(tmp_path.iterdir()) == []


def test_without_locks_in_the_file_system_the_block_still_runs(tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(file_locks, "lock_open_file", refuse)
    for path in (tmp_path / "a", tmp_path / "no folder" / "a"):
        with lock_path(path) as lock:
            assert not lock.is_held
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_and_takes_no_files_does_not_block(tmp_path, monkeypatch):
    def refuse(lock_file):  # as in /proc, where the folder exists
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(lock_file))

    monkeypatch.setattr(file_locks, "_open_lock_file", refuse)
    with lock_path(tmp_path / "a") as lock:
        assert not lock.is_held
