import io
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data.image_sources import find_images, parse_label_names, read_label_names
from surelabel.errors import DataError, InputError


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


def test_a_list_that_is_no_text_is_refused(album):
    (album / "list.txt").write_bytes(b"caf\xe9.jpg\n")
    with pytest.raises(DataError, match=r"list\.txt must be text in UTF-8"):
        find_images([album / "list.txt"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_list_without_permission_is_refused(album):
    (album / "list.txt").touch(mode=0)
    with pytest.raises(DataError, match=r"list\.txt cannot be read: Permission denied"):
        find_images([album / "list.txt"])


def test_names_come_from_words_a_file_or_standard_input(tmp_path, monkeypatch):
    assert read_label_names("dog, hot dog,bicycle") == ["dog", "hot dog", "bicycle"]
    (tmp_path / "names.txt").write_bytes("\ufeffdog\r\n\r\n café \r\n".encode())
    assert read_label_names(tmp_path / "names.txt") == ["dog", "", "café"]
    assert read_label_names(str(tmp_path / "names.txt")) == ["dog", "", "café"]
    monkeypatch.setattr("sys.stdin", io.StringIO("dog\ncat\n"))
    assert read_label_names("-") == ["dog", "cat"]


def test_many_names_in_words_are_not_taken_for_a_file():
    assert len(read_label_names(", ".join(f"label {n}" for n in range(2000)))) == 2000


@pytest.mark.parametrize("name", ["labels.txt", "Labels.CSV", "my.lst", "lists/labels", "a.names"])
def test_a_file_of_names_that_is_not_there_is_no_label(name):
    with pytest.raises(DataError, match=f"{name}: no such file"):
        read_label_names(name)


@pytest.mark.parametrize("text", ["St. Bernard", "tv/monitor, dog", "dog, names.txt", "a.k.a."])
def test_words_with_a_dot_or_several_names_are_no_file(text):
    assert read_label_names(text) == text.split(", ")


def test_aliases_are_taken_apart():
    names, aliases = parse_label_names(["sofa | couch|settee", "", " dog "])
    assert names == ["sofa", "dog"]
    assert aliases == {"sofa": ("sofa", "couch", "settee"), "dog": ("dog",)}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "Expected labels; got none"),
        (["", "  "], "Expected labels; got none"),
        (["dog", "", "cat", " Dog"], "'Dog' on line 1 and again on line 4"),
        (["sofa|couch", "Couch"], "'Couch' on line 1 and again on line 2"),
        (["sofa|sofa"], "'sofa' on line 1 and again on line 1"),
        (["sofa|Sofa"], "'Sofa' on line 1 and again on line 1"),
        (["dog", "x" * 300], "'x{40}…' on line 2 has 300 characters; at most 200"),
        (["dog", "hot\tdog"], r"'hot\\tdog' on line 2 contains a control character"),
        (["sofa|"], "'' on line 1 is empty beside a |"),
    ],
)
def test_a_bad_name_is_refused_with_its_line(names, message):
    with pytest.raises(InputError, match=message):
        parse_label_names(names)


def test_one_text_is_no_list_of_names():
    message = r"names must be a list of labels; got the string 'dog'. Write \['dog'\]"
    with pytest.raises(InputError, match=message):
        parse_label_names("dog")


@settings(deadline=None)
@given(st.lists(st.text(max_size=8)))
def test_checked_names_are_different_and_hold_all_spellings(entries):
    try:
        names, aliases = parse_label_names(entries)
    except InputError:
        return
    spellings = [s for name in names for s in aliases[name]]
    assert len({s.casefold() for s in spellings}) == len(spellings)
    assert list(aliases) == names
    assert sorted(spellings) == sorted(
        s.strip() for e in entries if e.strip() for s in e.split("|")
    )
