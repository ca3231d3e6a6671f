import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest
from safetensors import SafetensorError

from surelabel import file_locks, files
from surelabel.errors import DataError
from surelabel.files import (
    atomic_file,
    atomic_folder,
    atomic_new_file,
    check_folder_is_replaceable,
    escape_non_utf8_file_path,
    file_version,
    read_replaceable_folder,
    restore_folder,
)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError, match="by zero"), atomic_file(target) as new:
        new.write_text("half" * (1 // 0))
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert target.read_text() == "old"


def test_a_failed_write_leaves_the_old_folder(tmp_path):
    target = tmp_path / "folder"
    with atomic_folder(target) as new:
        (new / "a").write_text("old")
    with pytest.raises(ZeroDivisionError, match="by zero"), atomic_folder(target) as new:
        (new / "a").write_text("half" * (1 // 0))
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    assert (target / "a").read_text() == "old"


def test_a_new_folder_takes_the_place_of_the_old_one_whole(tmp_path):
    for name in ("a", "b"):
        with atomic_folder(tmp_path / "folder") as new:
            (new / name).write_text(name)
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["b"]


@pytest.mark.parametrize("place", [atomic_file, atomic_folder])
def test_a_place_that_cannot_be_written_is_named(tmp_path, place):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(DataError, match="below cannot be written"),
        place(tmp_path / "file" / "below"),
    ):
        pass


def test_others_can_read_what_a_strict_writer_wrote(tmp_path):
    usual = tmp_path / "usual"
    usual.write_text("")
    with atomic_folder(tmp_path / "folder") as new:
        (new / "a").touch(mode=0o600)
    assert (tmp_path / "folder" / "a").stat().st_mode == usual.stat().st_mode


def test_a_path_without_a_name_of_its_own_is_written_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with atomic_folder("../here/../there") as new:
        (new / "a").write_text("a")
    assert (tmp_path / "there" / "a").read_text() == "a"
    with (
        pytest.raises(DataError, match=r"^\. cannot be written: Is a directory"),
        atomic_file(".") as new,
    ):
        new.write_text("a")


@pytest.mark.parametrize("place", [".", "..", "../here", "../../"])
def test_the_current_folder_is_not_replaced_under_whoever_stands_in_it(
    place, tmp_path, monkeypatch
):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine").write_text("precious")
    monkeypatch.chdir(tmp_path / "here")
    for act in (check_folder_is_replaceable, lambda p: atomic_folder(p).__enter__()):
        with pytest.raises(
            DataError, match=r"must not contain the current folder; got .*\. Give another"
        ):
            act(place)
    assert [p.name for p in tmp_path.rglob("*")] == ["here", "mine"]


def test_odd_bytes_of_a_path_are_spelt_out():
    assert escape_non_utf8_file_path("caf\udce9, ü.jpg") == r"caf\udce9, ü.jpg"


DYING = """
import os, signal, sys
from pathlib import Path
from surelabel import files

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

moment, target = sys.argv[1:]
replace_path, replace_folder = Path.replace, files._replace_folder
if moment == "between two renames":
    files._exchange_paths = lambda *_: False  # as on a file system that cannot exchange folders
    Path.replace = lambda self, to: (die if self.suffix == ".new" else replace_path)(self, to)
if moment == "after the exchange":
    files._replace_folder = lambda *paths: die(replace_folder(*paths))
with files.atomic_folder(target) as new:
    (new / "a").write_text("new")
    if moment == "while writing":
        die()
"""


@pytest.fixture
def folder(tmp_path):
    with atomic_folder(tmp_path / "folder") as new:
        (new / "a").write_text("old")
    return tmp_path / "folder"


def names_beside(path):
    return sorted(p.name for p in path.parent.iterdir())


def die_while_replacing(folder, moment):
    done = subprocess.run([sys.executable, "-c", DYING, moment, str(folder)])
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("moment", "content"),
    [("while writing", "old"), ("between two renames", "old"), ("after the exchange", "new")],
)
def test_a_folder_whose_writer_was_killed_is_old_or_new_and_swept(folder, moment, content):
    die_while_replacing(folder, moment)
    assert len(names_beside(folder)) == 3  # the folder or its old version, temporary, lock
    assert folder.exists() == (moment != "between two renames")
    restore_folder(folder)
    assert (folder / "a").read_text() == content
    with atomic_folder(folder) as new:
        (new / "a").write_text("newest")
    assert (folder / "a").read_text() == "newest"
    assert names_beside(folder) == ["folder"]


def test_a_failed_write_after_a_kill_between_two_renames_restores_the_old_folder(folder):
    die_while_replacing(folder, "between two renames")
    with pytest.raises(ZeroDivisionError, match="by zero"), atomic_folder(folder) as new:
        (new / "a").write_text("half" * (1 // 0))
    assert (folder / "a").read_text() == "old"
    assert names_beside(folder) == ["folder"]


def test_a_folder_that_was_deleted_on_purpose_is_not_restored(folder):
    die_while_replacing(folder, "after the exchange")
    shutil.rmtree(folder)
    restore_folder(folder)
    assert not folder.exists()


def test_two_renames_replace_a_folder_where_folders_cannot_be_exchanged(folder, monkeypatch):
    monkeypatch.setattr(files, "_exchange_paths", lambda *_: False)
    with atomic_folder(folder) as new:
        (new / "a").write_text("new")
    assert (folder / "a").read_text() == "new"
    assert names_beside(folder) == ["folder"]
    replace = Path.replace

    def refuse(self, target):
        if self.suffix == ".new":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    with (
        pytest.raises(DataError, match="folder cannot be written: Input/output error"),
        atomic_folder(folder) as new,
    ):
        (new / "a").write_text("newest")
    assert (folder / "a").read_text() == "new"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges folders here")
def test_linux_exchanges_two_folders_in_one_operation(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    assert files._exchange_paths(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "b").exists()
    assert not files._exchange_paths(tmp_path / "a", tmp_path / "c")


@pytest.mark.parametrize("place", [atomic_file, atomic_folder])
def test_threads_that_write_one_path_all_succeed(tmp_path, place):
    def write(number):
        with place(tmp_path / "a") as new:
            if place is atomic_file:
                new.write_text(f"{number:03}" * 1000)
            else:
                (new / "b").write_text(f"{number:03}" * 1000)
                (new / "c").write_text(f"{number:03}" * 1000)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(24)))
    written = [p.read_text() for p in tmp_path.rglob("*") if p.is_file()]
    assert written == [written[0][:3] * 1000] * len(written)
    assert names_beside(tmp_path / "a") == ["a"]


def test_a_file_whose_writer_was_killed_is_swept_and_that_of_a_live_one_is_not(
    tmp_path, monkeypatch
):
    target = tmp_path / "a.txt"
    waiting = (
        "import sys; from surelabel.files import atomic_file\n"
        "with atomic_file(sys.argv[1]) as new:\n"
        "    new.write_text('half'); print(new, flush=True); sys.stdin.readline()"
    )
    command = [sys.executable, "-c", waiting, str(target)]
    monkeypatch.setattr(file_locks, "MAX_WAIT_SECONDS", 0.05)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        half = Path(writer.stdout.readline().decode().strip())
        with pytest.raises(DataError, match=r"a\.txt cannot be written: another process"):
            atomic_file(target).__enter__()
        assert half.read_text() == "half"
        writer.kill()
    with atomic_file(target) as new:
        new.write_text("whole")
    assert names_beside(target) == ["a.txt"]


@pytest.mark.parametrize("place", [atomic_file, atomic_new_file, atomic_folder])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError(errno.ENOSPC, "x"),
            r"a cannot be written: No space left .*\. Free disk space",
        ),
        (OSError(errno.EDQUOT, "x"), r"a cannot be written: Disk quota exceeded\. Free"),
        (OSError("encoder error"), r"a cannot be written: encoder error\.$"),
        (SafetensorError("I/O error: x (os error 28)"), r"a cannot be written: No space left"),
        (SafetensorError("x"), r"a cannot be written: x\.$"),
    ],
)
def test_a_full_disk_is_one_line_and_the_space_is_given_back(tmp_path, place, error, message):
    (tmp_path / "a").write_text("old")

    def write(new):
        (new / "b" if place is atomic_folder else new).write_text("half")
        raise error

    with pytest.raises(DataError, match=message), place(tmp_path / "a") as new:
        write(new)
    assert names_beside(tmp_path / "a") == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_an_error_of_a_file_in_a_new_folder_names_the_path_that_was_given(tmp_path):
    with (
        pytest.raises(DataError, match=rf"^{tmp_path}/a/b/c cannot be written: x\.$"),
        atomic_folder(tmp_path / "a") as new,
        atomic_file(new / "b" / "c"),
    ):
        raise OSError("x")
    with pytest.raises(DataError, match=r"^other$"), atomic_folder(tmp_path / "a"):
        raise DataError("other")


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(folder):
    versions = iter(["new", "newer"])

    def read():
        text = (folder / "a").read_text()
        for version in islice(versions, 1):
            with atomic_folder(folder) as new:
                (new / "a").write_text(version)
        if text != "newer":
            raise DataError(f"{text} does not match")
        return text

    assert read_replaceable_folder(folder, read) == "newer"
    with atomic_folder(folder) as new:
        (new / "a").write_text("old")
    with pytest.raises(DataError, match="old does not match"):
        read_replaceable_folder(folder, read)


def test_a_link_is_replaced_and_what_it_leads_to_remains(folder):
    link = folder.with_name("link")
    link.symlink_to("folder")
    with atomic_folder(link) as new:
        (new / "a").write_text("new")
    assert not link.is_symlink()
    assert [(folder / "a").read_text(), (link / "a").read_text()] == ["old", "new"]
    assert names_beside(folder) == ["folder", "link"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_gets_the_permission_bits_that_are_given(tmp_path, mode):
    file = tmp_path / "a"
    file.write_text("old")
    with atomic_file(file, mode=mode) as temporary:
        temporary.write_text("new")
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", mode)


def test_a_file_that_is_written_or_replaced_has_another_version(tmp_path):
    file = tmp_path / "a"
    file.write_text("old")
    versions = [file_version(file.stat())]
    assert file_version(file.stat()) == versions[0]
    file.write_text("older")
    versions.append(file_version(file.stat()))
    with atomic_file(file) as temporary:
        temporary.write_text("newer")
    versions.append(file_version(file.stat()))
    assert len(set(versions)) == 3
