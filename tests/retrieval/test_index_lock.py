"""The lock of an index, between real processes."""

import subprocess
import sys

import pytest

from surelabel.errors import DataError
from surelabel.retrieval.index_lock import lock_index

HOLDER = """
import sys
from pathlib import Path
from surelabel.retrieval.index_lock import lock_index
with lock_index(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_lock_is_refused_while_another_process_lives_and_free_when_it_is_killed(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(DataError, match=r"Another process is writing .*Run the command again"),
            lock_index(tmp_path),
        ):
            pass
        holder.kill()
    with lock_index(tmp_path):
        assert [file.name for file in tmp_path.iterdir()] == ["index.lock"]


def test_a_lock_is_free_again_after_an_error_inside(tmp_path):
    with pytest.raises(KeyError, match="mine"), lock_index(tmp_path):
        raise KeyError("mine")
    with lock_index(tmp_path), pytest.raises(DataError, match="Another process is writing"):
        lock_index(tmp_path).__enter__()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(DataError, match=r"file/index cannot be written: Not a directory"),
        lock_index(tmp_path / "file" / "index"),
    ):
        pass
