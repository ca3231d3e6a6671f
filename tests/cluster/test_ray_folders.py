import os
import signal
import subprocess
import sys

import pytest

from surelabel.cluster.ray_folders import (
    LOCK_FILE,
    delete_abandoned_ray_folders,
    temporary_ray_folder,
)

PROGRAM = """
import sys, time
from surelabel.cluster.ray_folders import temporary_ray_folder
with temporary_ray_folder(sys.argv[1]) as folder:
    (folder / "session_1" / "logs").mkdir(parents=True)
    (folder / "session_1" / "logs" / "raylet.out").write_text("text")
    (folder / "stderr.log").write_text("text")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def killed_folder(tmp_path):
    """Return the folder of a process that is killed while the test runs, and the process."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        name = process.stdout.readline().strip()
        yield tmp_path / os.path.basename(name), process
        process.kill()


def test_the_folder_of_a_killed_process_is_deleted_and_that_of_a_running_one_is_not(
    killed_folder, tmp_path
):
    folder, process = killed_folder
    with temporary_ray_folder(tmp_path) as own:
        assert {folder, own} == set(tmp_path.iterdir())
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (folder / LOCK_FILE).exists()
        delete_abandoned_ray_folders(tmp_path)
        assert [own] == list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


def test_folders_of_other_programs_remain(tmp_path):
    (tmp_path / "ray-results").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / LOCK_FILE).touch()
    (tmp_path / "ray-link").symlink_to(tmp_path / "other")
    (tmp_path / "ray-file").touch()
    names = sorted(path.name for path in tmp_path.iterdir())
    with temporary_ray_folder(tmp_path):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / "other" / LOCK_FILE).exists()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can change an owner"
)
def test_folders_of_other_users_remain(tmp_path):
    (tmp_path / "ray-1234").mkdir()
    (tmp_path / "ray-1234" / LOCK_FILE).touch()
    os.chown(tmp_path / "ray-1234", 12345, 12345)
    delete_abandoned_ray_folders(tmp_path)
    assert (tmp_path / "ray-1234" / LOCK_FILE).exists()
    os.chown(tmp_path / "ray-1234", os.getuid(), -1)
    delete_abandoned_ray_folders(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_for_temporary_files_is_created(tmp_path):
    with temporary_ray_folder(tmp_path / "a" / "b") as folder:
        assert folder.parent == tmp_path / "a" / "b"
