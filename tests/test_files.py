import pytest

from surelabel.errors import DataError
from surelabel.files import (
    atomic_file,
    atomic_folder,
    check_folder_is_replaceable,
    escape_non_utf8_file_path,
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
