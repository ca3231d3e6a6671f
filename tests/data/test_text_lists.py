import io
import os

import pytest

from surelabel.data.text_lists import (
    read_first_line,
    read_text_list,
    read_text_list_from_stdin,
)
from surelabel.errors import DataError


def test_lines_are_stripped_and_empty_lines_are_included(tmp_path, monkeypatch):
    (tmp_path / "list.txt").write_bytes("\ufeffa.jpg\r\n\r\n b.jpg \r\n".encode())
    assert read_text_list(tmp_path / "list.txt") == ["a.jpg", "", "b.jpg"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffa.jpg\n\tb.jpg\n"))
    assert read_text_list_from_stdin() == ["a.jpg", "b.jpg"]


def test_a_list_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "list.txt").write_bytes(b"caf\xe9.jpg\n")
    with pytest.raises(DataError, match=r"list\.txt must be text in UTF-8"):
        read_text_list(tmp_path / "list.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_list_without_permission_is_refused(tmp_path):
    (tmp_path / "list.txt").touch(mode=0)
    with pytest.raises(DataError, match=r"list\.txt cannot be read: Permission denied"):
        read_text_list(tmp_path / "list.txt")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "dog\n" + "x" * 10_001,
            r"Line 2 of .* at most 10000 characters; got 10001 characters: 'xxx.*'…\.",
        ),
        ("dog\nca\0t", r"Line 2 of .* must be text; got a NUL byte after 'ca'\."),
    ],
)
def test_a_line_that_is_no_entry_is_refused_in_a_short_message(tmp_path, monkeypatch, text, reason):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    with pytest.raises(DataError, match=reason) as caught:
        read_text_list_from_stdin()
    assert len(str(caught.value)) < 200
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(DataError, match=r"list\.txt must "):
        read_text_list(tmp_path / "list.txt")


def test_a_list_that_is_a_named_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "list.txt")
    with pytest.raises(DataError, match=r"list\.txt cannot be read: .* got a named pipe\."):
        read_text_list(tmp_path / "list.txt")


def test_the_first_line_is_read_without_the_rest_of_the_file(tmp_path):
    (tmp_path / "a").write_bytes("\ufeff path,dog \r\n".encode() + b"\xff")
    assert read_first_line(tmp_path / "a") == "path,dog"
    (tmp_path / "a").write_text("é" * 100_000)
    assert read_first_line(tmp_path / "a") == "é" * 50_000
    (tmp_path / "a").write_bytes(b"a\xff\n")
    with pytest.raises(DataError, match="got bytes that are not UTF-8 at position 1"):
        read_first_line(tmp_path / "a")
