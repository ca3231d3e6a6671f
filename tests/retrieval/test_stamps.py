"""What a file was, and whether it still is."""

import os

import pytest

from surelabel.data.cache import content_hash
from surelabel.errors import InputError
from surelabel.retrieval.stamps import Stamp, change, stamp, stamped, storable, whole


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_text("first")
    return str(path)


def test_a_stamp_is_size_time_and_content(file):
    os.utime(file, ns=(7, 7))
    assert stamp(file) == Stamp(5, 7, content_hash(file))
    assert stamp(file + "x") is None


def test_a_touch_is_no_change_and_another_content_is(file):
    then = stamp(file)
    assert change(file, then) is None
    os.utime(file, ns=(7, 7))
    assert change(file, then) is None
    with open(file, "w") as out:
        out.write("other")
    assert change(file, then) == "its content changed after it was predicted"
    assert change(file, None) == "its file could not be read when it was indexed"


def test_a_file_that_is_not_what_was_predicted_keeps_the_hash_of_that_alone(file):
    hash = content_hash(file)
    assert stamped([file], [hash]).to_pylist()[0]["bytes"] == 5
    [row] = stamped([file], ["0" * 32]).to_pylist()
    assert row == {"path": file, "bytes": None, "mtime_ns": None, "hash": "0" * 32}
    assert change(file, Stamp(None, None, "0" * 32))
    assert change(file, Stamp(None, None, hash)) is None


def test_paths_are_whole_and_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert whole(["a.jpg", "./b/../c.jpg", "/d"]) == [
        str(tmp_path / "a.jpg"),
        str(tmp_path / "c.jpg"),
        "/d",
    ]
    assert [storable(path) for path in ("ä 🍎", "\udcff")] == [True, False]
    with pytest.raises(InputError, match=r"must be valid Unicode.*rename that file"):
        stamped(["\udcff.jpg"])
