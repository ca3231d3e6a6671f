"""Members of archives, found by their headers and never extracted."""

import io
import os
import tarfile
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import DataError
from surelabel.storage import tar_archives
from surelabel.storage.tar_archives import (
    TarMember,
    cache_tar_contents,
    cached_tar_index,
    open_tar_member,
    read_tar_members,
)

MEMBERS = [("./a/1.jpg", b"one"), ("2.jpg", b"second"), ("empty.jpg", b"")]


def names_of(content):
    return [m and m.name for m in read_tar_members("x.tar", io.BytesIO(content))]


def archive_with(*entries):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.linkname = kind, len(content), "target"
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


FILES = archive_with(*((name, tarfile.REGTYPE, content) for name, content in MEMBERS))


def test_the_members_are_those_of_tarfile(tmp_path, tar_archive):
    path = tar_archive(tmp_path / "x.tar", [*MEMBERS, ("long/" + "n" * 200 + ".jpg", b"long")])
    with open(path, "rb") as stream, tarfile.open(path) as archive:
        for member, entry in zip(read_tar_members(path, stream), archive, strict=True):
            assert member == (os.path.normpath(entry.name), entry.offset_data, entry.size)
            content = archive.extractfile(entry).read()
            assert open_tar_member(stream.fileno(), member).read() == content


@given(st.integers(0, 40), st.integers(-45, 45), st.integers(0, 2), st.integers(0, 60))
def test_a_member_is_read_like_a_file(start, offset, whence, n_bytes):
    content = bytes(range(40))
    file = io.BytesIO(content)
    with tempfile.TemporaryFile() as other:
        other.write(b"before" + content + b"after")
        other.flush()
        member = open_tar_member(other.fileno(), TarMember("x", 6, 40))
        file.seek(start)
        member.seek(start)
        base = {0: 0, 1: start, 2: 40}[whence]
        if base + offset >= 0:
            assert member.seek(offset, whence) == file.seek(offset, whence)
        assert member.read(n_bytes) == file.read(n_bytes)
        assert member.tell() == file.tell()


def test_links_devices_and_sparse_members_are_counted_and_hidden_ones_are_skipped():
    content = archive_with(
        ("d", tarfile.DIRTYPE, b""),
        ("1.jpg", tarfile.SYMTYPE, b""),
        ("2.jpg", tarfile.LNKTYPE, b""),
        ("3.jpg", tarfile.CHRTYPE, b""),
        (".hidden/4.jpg", tarfile.REGTYPE, b"x"),
        ("._5.jpg", tarfile.REGTYPE, b"x"),
        ("6.jpg", tarfile.REGTYPE, b"x"),
    )
    assert names_of(content) == [None, None, None, "6.jpg"]


@pytest.mark.parametrize("name", ["../x.jpg", "/etc/x.jpg", "a/../../x.jpg", ".."])
def test_a_member_outside_of_the_archive_is_refused(name):
    message = rf"x\.tar: names of members must be relative .* got '{name}'"
    with pytest.raises(DataError, match=message):
        names_of(archive_with(("a.jpg", tarfile.REGTYPE, b"x"), (name, tarfile.REGTYPE, b"x")))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (FILES[:514], r"x\.tar is truncated at member './a/1.jpg'"),
        (FILES[:1100], r"x\.tar is truncated after 1 member\."),
        (FILES[:1024] + b"#" * 512 + FILES[1536:], r"x\.tar is damaged after 1 member\."),
        (b"no archive" * 100, r"x\.tar must be a tar archive; got another file"),
        (b"", r"x\.tar must be a tar archive"),
        (b"\x1f\x8b" + FILES, r"x\.tar is a compressed archive, .* \(gunzip x\.tar\)"),
        (b"BZh9" + FILES, r"x\.tar is a compressed archive"),
    ],
)
def test_a_damaged_archive_is_refused_on_one_line(content, message):
    with pytest.raises(DataError, match=message) as error:
        names_of(content)
    assert "\n" not in str(error.value)


@given(st.binary(max_size=30), st.integers(0, len(FILES)))
def test_no_archive_is_read_that_differs_from_the_headers(damage, start):
    content = FILES[:start] + damage + FILES[start + len(damage) :]
    try:
        members = [m for m in read_tar_members("x.tar", io.BytesIO(content)) if m]
    except DataError:
        return
    assert all(m.offset + m.size <= len(content) and m.size >= 0 for m in members)


def test_of_two_members_with_one_name_the_last_is_found(tmp_path):
    content = archive_with(*(("1.jpg", tarfile.REGTYPE, text) for text in (b"old", b"newer")))
    contents = cache_tar_contents("twice.tar", io.BytesIO(content), 1)
    assert contents.names == ["1.jpg"]
    member = contents.index.find("1.jpg")
    assert content[member.offset : member.offset + member.size] == b"newer"
    assert contents.index.find("2.jpg") is None


def test_an_index_is_cached_until_its_archive_changes(monkeypatch):
    contents = cache_tar_contents("a.tar", io.BytesIO(FILES), "state")
    assert cached_tar_index("a.tar", "state") is contents.index
    assert cached_tar_index("a.tar", "other") is None
    monkeypatch.setattr(tar_archives, "MAX_INDEXED_MEMBERS", 5)
    cache_tar_contents("b.tar", io.BytesIO(FILES), None)
    assert cached_tar_index("a.tar", "state") is None
    assert cached_tar_index("b.tar", None) is not None
