"""What a file was, and whether it still is."""

import os

import pytest

from surelabel.errors import InputError
from surelabel.features.cache import content_hash_for_cache
from surelabel.retrieval.file_state import (
    FileState,
    absolute_file_state_paths,
    describe_file_state_change,
    file_state_table,
    is_valid_file_state_path,
    read_file_state,
)
from surelabel.storage.stored_images import stored_image_status


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_text("first")
    return str(path)


def change(path, recorded):
    return describe_file_state_change(path, recorded, stored_image_status(path))


def test_a_stamp_is_size_time_and_content(file):
    os.utime(file, ns=(7, 7))
    assert read_file_state(file) == FileState(5, 7, content_hash_for_cache(file))
    assert read_file_state(file + "x") is None


def test_a_touch_is_no_change_and_another_content_is(file):
    then = read_file_state(file)
    assert change(file, then) is None
    os.utime(file, ns=(7, 7))
    assert change(file, then) is None
    with open(file, "w") as out:
        out.write("other")
    assert change(file, then) == "the content changed after the prediction"
    assert change(file, None) == "the file could not be read when it was indexed"


def test_a_file_that_is_not_what_was_predicted_keeps_the_hash_of_that_alone(file):
    hash = content_hash_for_cache(file)
    assert file_state_table([file], [hash]).to_pylist()[0]["bytes"] == 5
    [row] = file_state_table([file], ["0" * 32]).to_pylist()
    assert row == {"path": file, "bytes": None, "mtime_ns": None, "hash": "0" * 32}
    assert change(file, FileState(None, None, "0" * 32))
    assert change(file, FileState(None, None, hash)) is None


def test_paths_are_whole_and_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute_file_state_paths(["a.jpg", "./b/../c.jpg", "/d"]) == [
        str(tmp_path / "a.jpg"),
        str(tmp_path / "c.jpg"),
        "/d",
    ]
    assert [is_valid_file_state_path(path) for path in ("ä 🍎", "\udcff")] == [True, False]
    with pytest.raises(InputError, match=r"must be valid Unicode.*Rename that file"):
        file_state_table(["\udcff.jpg"])
