import os
import resource
import signal
import socket
from contextlib import contextmanager

import pytest

from surelabel import file_readers
from surelabel.errors import DataError
from surelabel.file_readers import (
    check_regular_file,
    contains_url,
    describe_undecodable_text,
    open_lines,
    open_regular_file,
    parse_json,
    parse_toml,
    quote_of_file,
    read_json,
    read_text,
    read_toml,
)


def lines_of(path):
    with open_lines(path) as lines:
        return list(lines)


READERS = [
    read_text,
    read_json,
    read_toml,
    lines_of,
    check_regular_file,
]


@contextmanager
def within(seconds):
    """Raise TimeoutError in a block that waits for another process."""

    def stop(*_):
        raise TimeoutError

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.parametrize("read", READERS)
def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with within(5), pytest.raises(DataError, match=r"pipe cannot be read: .*got a named pipe\."):
        read(tmp_path / "pipe")


@pytest.mark.parametrize("read", READERS)
def test_a_folder_a_device_and_a_socket_are_refused(tmp_path, read, monkeypatch):
    with pytest.raises(DataError, match=r"expected a regular file; got a folder\."):
        read(tmp_path)
    (tmp_path / "zeros").symlink_to("/dev/zero")
    with pytest.raises(DataError, match=r"zeros cannot be read: .* got a device\."):
        read(tmp_path / "zeros")
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(DataError, match=r"socket cannot be read: .* got a socket\."):
            read("socket")


def test_a_link_to_a_file_is_read(tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_text(tmp_path / "link") == "text"
    with open_regular_file(tmp_path / "link") as stream:
        assert stream.read() == b"text"


def test_missing_files_and_invalid_paths_are_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.json cannot be read: No such file .*Copy it\.$"):
        read_json(tmp_path / "none.json", remedy="Copy it.")
    with pytest.raises(DataError, match=r"NUL byte; got 'a\\x00b'"):
        read_text("a\0b")


def test_too_many_open_files_are_named(tmp_path):
    (tmp_path / "file").write_text("{}")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(DataError, match="file cannot be read: Too many open files"):
            read_json(tmp_path / "file")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "lists and objects that are nested too deeply"),
        ('{"a":' * 100_000, "lists and objects that are nested too deeply"),
        ("1" * 5000, "a number with more than 4300 digits"),
        ('{"names": 1, "names": 2}', "an object that contains the key 'names' twice"),
        ('[{"a": 1}, {"b": {"a": 1, "a": 1}}]', "an object that contains the key 'a' twice"),
        ('{"a": 1', "Expecting ',' delimiter: line 1 column 8"),
        ("", "Expecting value"),
    ],
)
def test_json_that_cannot_be_parsed_is_refused_on_one_line(tmp_path, text, reason):
    with pytest.raises(ValueError, match=f"^{reason}"):
        parse_json(text)
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=rf"a\.json is damaged: {reason}.*\. Copy it\.$"):
        read_json(tmp_path / "a.json", remedy="Copy it.")
    with pytest.raises(DataError, match=rf"a\.json must be a list; got: {reason}"):
        read_json(tmp_path / "a.json", kind="a list")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = " + "[" * 10_000, "arrays and tables that are nested too deeply"),
        ("x = " + "1" * 5000, "a number with more than 4300 digits"),
        ("a" + ".a" * 100_000 + " = 1", "a key with more than 32 parts"),
        ('["a b"' + '."a b"' * 100_000 + "]", "a key with more than 32 parts"),
        ("x = {" + "'!' . " * 100 + "y = 1}", "a key with more than 32 parts"),
        ("x = 1\nx = 2", "Cannot overwrite a value"),
        ('x = "' + '\\"' * 30_000, "Unterminated string"),
    ],
)
def test_toml_that_cannot_be_parsed_is_refused_without_quadratic_memory(tmp_path, text, reason):
    with within(5), pytest.raises(ValueError, match=f"^{reason}"):
        parse_toml(text)
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(DataError, match=rf"a\.toml must be a TOML file; got: {reason}"):
        read_toml(tmp_path / "a.toml")


def test_toml_keys_with_dots_are_read():
    assert parse_toml('a.b."c.d" = "x.y.z"') == {"a": {"b": {"c.d": "x.y.z"}}}
    sentence = "Hello. " * 100
    text = f"# {sentence}\nx = \"{sentence}\"\ny = '{sentence}'\nz = '''{sentence}\n'''"
    assert parse_toml(text) == {"x": sentence, "y": sentence, "z": f"{sentence}\n"}


def test_a_file_of_a_terabyte_without_content_is_refused_before_reading(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)
    for read in (read_text, read_json, read_toml):
        with pytest.raises(DataError, match=r"at most \d+ bytes; got 1099511627776 bytes"):
            read(tmp_path / "sparse")


@pytest.mark.parametrize(
    ("content", "found"),
    [(b"\xff\xfea\0", "text in UTF-16"), (b"caf\xe9", "bytes that are not UTF-8 at position")],
)
def test_other_encodings_are_refused(tmp_path, content, found):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DataError, match=f"a must be text in UTF-8; got: {found}"):
        read_text(tmp_path / "a")
    with pytest.raises(DataError, match=f"a is damaged: {found}"):
        read_json(tmp_path / "a")
    with pytest.raises(DataError, match=f"line 1: expected text in UTF-8; got {found}"):
        lines_of(tmp_path / "a")


def test_a_nul_byte_is_no_text(tmp_path):
    (tmp_path / "a").write_bytes(b"dog\n\0\0\n")
    with pytest.raises(DataError, match="a must be text in UTF-8; got: a NUL byte at position 4"):
        read_text(tmp_path / "a")


def test_byte_order_marks_and_line_ends_are_normalized(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfdog\r\ncat\rcow\n")
    assert read_text(tmp_path / "a") == "dog\ncat\ncow\n"
    (tmp_path / "b").write_bytes("\ufeffdog\nsüß".encode())
    assert lines_of(tmp_path / "b") == ["dog\n", "süß"]


def test_an_invalid_line_is_named_by_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(file_readers, "LINE_LIMIT", 10)
    (tmp_path / "a").write_bytes(b"short\nshort\n" + b"x" * 11)
    with pytest.raises(DataError, match="a, line 3: a line must have at most 10 bytes"):
        lines_of(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"short\n\xff\n")
    with pytest.raises(DataError, match="a, line 2: expected text in UTF-8"):
        lines_of(tmp_path / "a")


def test_a_quote_of_a_file_is_short_and_has_no_line_break():
    assert quote_of_file("a\nb") == r"'a\nb'"
    assert len(quote_of_file("x" * 10**6)) < 70
    assert len(quote_of_file(["x"] * 1000)) < 70


@pytest.mark.parametrize(
    ("content", "start", "text"),
    [
        ("é".encode("utf-16"), 0, "text in UTF-16"),
        ("é".encode("utf-32"), 0, "text in UTF-32"),
        ("path,é".encode("utf-16-be"), 11, "text in UTF-16 without a byte order mark"),
        (b"a\x81", 1, "bytes that are not UTF-8 at position 1, such as 0x81"),
        (b"a\xfc", 1, "bytes that are not UTF-8 at position 1, such as 0xfc (ü in Windows-1252)"),
    ],
)
def test_another_encoding_is_named(content, start, text):
    assert describe_undecodable_text(content, start) == text


def test_urls_are_found_also_behind_a_folder():
    urls = ["https://x.org/a.png", "folder/http://x.org/a.png", "s3://bucket/a.csv"]
    assert all(map(contains_url, urls))
    assert not any(map(contains_url, ["a.png", "C:\\images\\a.png", "xmp:folder", "/a//b.png"]))


def test_a_file_is_closed_if_its_lines_are_not_read_to_the_end(tmp_path):
    (tmp_path / "a").write_bytes(b"dog\ncat\n")
    with open_lines(tmp_path / "a") as lines:
        assert next(lines) == "dog\n"
    with pytest.raises(ValueError, match="closed file"):
        next(lines)
