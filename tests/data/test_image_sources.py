import io
import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from surelabel.data.image_sources import find_images
from surelabel.errors import DataError


@pytest.fixture
def album(tmp_path):
    for name in ["b.JPG", "a.png", "notes.md", ".hidden.jpg", "sub/c.webp", ".git/d.jpg"]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return tmp_path


def below(folder, paths):
    return [Path(p).relative_to(folder).as_posix() for p in paths]


def test_a_folder_gives_its_images_sorted_without_hidden_ones(album):
    assert below(album, find_images([album])) == ["a.png", "b.JPG", "sub/c.webp"]


def test_the_same_image_by_two_ways_comes_once(album, monkeypatch):
    monkeypatch.chdir(album)
    assert find_images(["b.JPG", "./b.JPG", "sub/../b.JPG", album]) == [
        "b.JPG",
        str(album / "a.png"),
        str(album / "sub/c.webp"),
    ]


def test_a_list_is_relative_to_its_folder_or_the_working_directory(album, tmp_path, monkeypatch):
    monkeypatch.chdir(album / "sub")
    chosen = album / "chosen.txt"
    chosen.write_bytes(b"\xef\xbb\xbfsub/c.webp\r\n\r\n  a.png \nc.webp\nlost.jpg\n")
    found = find_images([chosen])
    assert found == [str(album / "sub/c.webp"), str(album / "a.png"), "lost.jpg"]


def test_a_dash_reads_the_list_from_standard_input(album, monkeypatch):
    monkeypatch.chdir(album)
    monkeypatch.setattr("sys.stdin", io.StringIO("a.png\nb.JPG\na.png\n"))
    assert find_images(["-"]) == ["a.png", "b.JPG"]


def test_a_file_named_outright_is_taken_whatever_its_suffix(album):
    assert below(album, find_images([album / "notes.md"])) == ["notes.md"]


def test_nothing_found_says_what_was_looked_for_and_where(tmp_path):
    for number in range(12):
        (tmp_path / f"{number}.csv").touch()
    with pytest.raises(
        DataError, match=r"\(\.apng .* \.webp\); got 0 images among 12 files in .*Give a"
    ):
        find_images([tmp_path])
    with pytest.raises(DataError, match=r"Expected images .* got no source"):
        find_images([])


def test_a_place_that_does_not_exist_is_named(album):
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        find_images([album, album / "nowhere"])


@pytest.mark.usefixtures("deadline")
def test_special_files_are_listed_and_do_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.jpg"))
    (tmp_path / "zero.jpg").symlink_to("/dev/zero")
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    (tmp_path / "folder").symlink_to(tmp_path)  # is not followed
    names = ["loop.jpg", "pipe.jpg", "socket.jpg", "zero.jpg"]
    assert below(tmp_path, find_images([tmp_path])) == names
    assert below(tmp_path, find_images([tmp_path / name for name in names])) == names


def test_a_symbolic_link_without_target_does_not_exist(tmp_path):
    (tmp_path / "dangling.jpg").symlink_to("gone.jpg")
    with pytest.raises(DataError, match=r"dangling\.jpg: no such file or folder"):
        find_images([tmp_path / "dangling.jpg"])


@pytest.fixture
def unprivileged_folder():
    """A folder of a user whose permissions apply; they do not apply to root."""
    folder, user = Path(tempfile.mkdtemp()), os.geteuid()
    if user == 0:
        os.chown(folder, 65534, -1)
        os.seteuid(65534)
    yield folder
    os.seteuid(user)
    shutil.rmtree(folder)


def test_a_folder_without_permission_is_named(unprivileged_folder):
    for name in ("closed", "open"):
        (unprivileged_folder / name).mkdir()
        (unprivileged_folder / name / "a.jpg").touch()
    (unprivileged_folder / "closed").chmod(0)
    with pytest.warns(UserWarning, match="closed cannot be read: Permission denied. The images"):
        assert below(unprivileged_folder, find_images([unprivileged_folder])) == ["open/a.jpg"]
    (unprivileged_folder / "closed").chmod(0o700)
    assert len(find_images([unprivileged_folder])) == 2


def test_names_that_are_not_utf8_are_listed(tmp_path):
    name = os.fsdecode(b"caf\xe9.jpg")
    (tmp_path / name).touch()
    assert below(tmp_path, find_images([tmp_path])) == [name]
