import io
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
