import io
import os

import pytest

from surelabel.data.text_lists import read_text_list, read_text_list_from_stdin
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
