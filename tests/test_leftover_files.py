import os
import subprocess
import time

import pytest

from surelabel import leftover_files
from surelabel.file_locks import PathLock, lock_path
from surelabel.leftover_files import (
    MAX_AGE,
    delete_leftovers_beside,
    delete_leftovers_in,
    delete_path,
    previous_folders,
    temporary_folder_beside,
)

HELD = PathLock(is_held=True, is_abandoned=False)
ABANDONED = PathLock(is_held=True, is_abandoned=True)
NO_LOCK = PathLock(is_held=False, is_abandoned=False)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def make(folder, *names, age=0.0):
    for name in names:
        (folder / name).mkdir()
        (folder / name / "half").write_text("half")
        os.utime(folder / name, (time.time() - age,) * 2)


def test_only_leftovers_of_the_target_are_deleted(tmp_path):
    others = [".b.0123abcd.new", ".a.b.0123abcd.new", ".a.0123abcd", ".a.notes.new", "a"]
    make(tmp_path, ".a.0123abcd.new", ".a.89abcdef.old", *others)
    (tmp_path / ".a.99999999.new").write_text("half")
    delete_leftovers_beside(tmp_path / "a", HELD)
    assert names(tmp_path) == sorted(others)


def test_the_temporary_path_of_a_running_process_of_0_1_0_remains(tmp_path):
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    make(tmp_path, f".a.{ended.pid}.new", f".a.{os.getpid()}.new", f".a.{os.getppid()}.new")
    delete_leftovers_beside(tmp_path / "a", HELD)
    assert names(tmp_path) == [f".a.{os.getppid()}.new"]


def test_without_a_lock_only_old_leftovers_are_deleted(tmp_path):
    make(tmp_path, ".a.0123abcd.new", ".a.1.new")
    make(tmp_path, ".a.89abcdef.new", ".a.2.old", age=MAX_AGE + 60)
    delete_leftovers_beside(tmp_path / "a", NO_LOCK)
    assert names(tmp_path) == [".a.0123abcd.new", ".a.1.new"]


def test_of_many_files_only_an_abandoned_lock_lets_all_names_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(leftover_files, "MAX_NAMES", 0)
    make(tmp_path, ".a.0123abcd.new")
    delete_leftovers_beside(tmp_path / "a", HELD)
    assert names(tmp_path) == [".a.0123abcd.new"]
    delete_leftovers_beside(tmp_path / "a", ABANDONED)
    assert names(tmp_path) == []


def test_the_newest_previous_folder_is_the_last(tmp_path):
    make(tmp_path, ".a.0123abcd.old", age=50)
    make(tmp_path, ".a.12.old", ".a.89abcdef.new", ".b.0123abcd.old", age=5)
    make(tmp_path, ".a.89abcdef.old", age=500)
    found = [path.name for path in previous_folders(tmp_path / "a")]
    assert found == [".a.89abcdef.old", ".a.0123abcd.old", ".a.12.old"]
    assert previous_folders(tmp_path / "nowhere" / "a") == []


def test_a_folder_of_the_package_is_swept_by_age(tmp_path):
    make(tmp_path, ".a.0123abcd.new", "kept")
    make(tmp_path, ".b.77.new", ".tmpA1b2C3", age=MAX_AGE + 60)
    delete_leftovers_in(tmp_path)
    assert names(tmp_path) == [".a.0123abcd.new", "kept"]
    delete_leftovers_in(tmp_path, min_age=0)
    assert names(tmp_path) == ["kept"]
    delete_leftovers_in(tmp_path / "nowhere")


def test_lock_files_of_killed_processes_are_deleted_with_their_temporary_paths(tmp_path):
    make(tmp_path, ".a.0123abcd.new", ".b.0123abcd.new", ".c.0123abcd.new")
    (tmp_path / ".a.lock").touch()  # a process that was killed
    with lock_path(tmp_path / "b"):
        delete_leftovers_in(tmp_path)
        assert names(tmp_path) == [".b.0123abcd.new", ".b.lock", ".c.0123abcd.new"]
    assert names(tmp_path) == [".b.0123abcd.new", ".c.0123abcd.new"]


def test_a_link_is_deleted_and_not_what_it_leads_to(tmp_path):
    make(tmp_path, "mine")
    (tmp_path / "link").symlink_to("mine")
    delete_path(tmp_path / "link")
    assert names(tmp_path) == ["mine"]
    assert (tmp_path / "mine" / "half").exists()


def test_the_temporary_folder_is_deleted_after_an_error(tmp_path):
    with (
        pytest.raises(ZeroDivisionError, match="by zero"),
        temporary_folder_beside(tmp_path / "a") as folder,
    ):
        (folder / "half").write_text("half" * (1 // 0))
    assert names(tmp_path) == []
