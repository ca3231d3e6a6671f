import io
import os
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data.label_names import parse_label_names, read_label_names
from surelabel.errors import DataError, InputError


def test_names_come_from_words_a_file_or_standard_input(tmp_path, monkeypatch):
    assert read_label_names("dog, hot dog,bicycle") == ["dog", "hot dog", "bicycle"]
    (tmp_path / "names.txt").write_bytes("\ufeffdog\r\n\r\n café \r\n".encode())
    assert read_label_names(tmp_path / "names.txt") == ["dog", "", "café"]
    assert read_label_names(str(tmp_path / "names.txt")) == ["dog", "", "café"]
    monkeypatch.setattr("sys.stdin", io.StringIO("dog\ncat\n"))
    assert read_label_names("-") == ["dog", "cat"]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ('"salt, pepper", dog', ["salt, pepper", "dog"]),
        ('dog ,\t"salt, pepper" \n "cup"\r\n', ["dog", "salt, pepper", "cup", ""]),
        ('"a ""big"", red dog"', ['a "big", red dog']),
        ('"Mona" Lisa, 5" nail, "dog', ['"Mona" Lisa', '5" nail', '"dog']),
        (", dog,, cat", ["", "dog", "", "cat"]),
    ],
)
def test_a_label_in_double_quotes_contains_commas(text, labels):
    assert read_label_names(text) == labels


def test_many_names_in_words_are_not_taken_for_a_file():
    assert len(read_label_names(", ".join(f"label {n}" for n in range(2000)))) == 2000


@pytest.mark.parametrize("name", ["labels.txt", "Labels.CSV", "my.lst", "lists/labels", "a.names"])
def test_a_file_of_names_that_is_not_there_is_no_label(name):
    with pytest.raises(DataError, match=f"{name} cannot be read: No such file"):
        read_label_names(name)


def test_what_is_no_file_of_labels_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("labels")
    os.mkfifo("pipe.txt")
    os.mkdir("folder.txt")
    os.mkdir("dog")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("labels.names")
        kinds = {
            "labels": "a named pipe",
            "pipe.txt": "a named pipe",
            "folder.txt": "a folder",
            "/dev/null": "a device",
            "labels.names": "a socket",
        }
        for name, kind in kinds.items():
            expected = f"^{name} cannot be read: expected a regular file; got {kind}. Give a file"
            with pytest.raises(DataError, match=expected):
                read_label_names(name)
    assert read_label_names("dog") == ["dog"]


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
        ([], "Expected at least one label; got none"),
        (["", "  "], "Expected at least one label; got none"),
        (["dog", "", "cat", " Dog"], "'Dog' on line 1 and again on line 4"),
        (["sofa|couch", "Couch"], "'Couch' on line 1 and again on line 2"),
        (
            ["dog", "\u200fDog"],
            r"got 'dog' on line 1 and '\\u200fDog' on line 2, which are equal without",
        ),
        (["sofa|sofa"], "'sofa' on line 1 and again on line 1"),
        (["sofa|Sofa"], "'Sofa' on line 1 and again on line 1"),
        (["dog", "x" * 300], "'x{40}…' on line 2 has 300 characters, but must have at most 200"),
        (["dog", "hot\tdog"], r"'hot\\tdog' on line 2 contains a control character"),
        (["sofa|"], r"'' on line 1 is empty, because a spelling before or after \|"),
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
