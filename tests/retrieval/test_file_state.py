"""What a file was, and whether it still is."""

import os
import tarfile
from datetime import datetime

import pytest
from PIL import ExifTags, Image

from surelabel.errors import InputError
from surelabel.features.cache import content_hash_for_cache
from surelabel.retrieval.file_state import (
    FileState,
    absolute_file_state_paths,
    add_file_metadata,
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
    assert change(file, then) == "the file content changed after the prediction"
    assert change(file, None) == "the file could not be read when it was indexed"


def test_a_file_that_is_not_what_was_predicted_keeps_the_hash_of_that_alone(file):
    hash = content_hash_for_cache(file)
    assert file_state_table([file], [hash]).to_pylist()[0]["bytes"] == 5
    [row] = file_state_table([file], ["0" * 32]).to_pylist()
    assert row.pop("hash") == "0" * 32
    assert row.pop("path") == file
    assert set(row) == {"bytes", "mtime_ns", "date", "width", "height"}
    assert set(row.values()) == {None}
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
    with pytest.raises(InputError, match=r"must be valid Unicode.*Rename this file"):
        file_state_table(["\udcff.jpg"])


def test_date_and_size_are_those_of_the_header_in_files_and_archives(tmp_path):
    paths = [str(tmp_path / f"{row}.jpg") for row in range(20)]
    for row, path in enumerate(paths):
        exif = Image.Exif()
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = (
            f"2024:02:{1 + row:02} 10:00:00"
        )
        Image.new("RGB", (30 + row, 20)).save(path, exif=exif)
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        for row, path in enumerate(paths):
            archive.add(path, f"{row}.jpg")
    in_archive = [str(tmp_path / "all.tar" / f"{row}.jpg") for row in range(20)]
    table = file_state_table([*paths, *in_archive, str(tmp_path / "none.jpg")])
    assert table["width"].to_pylist() == [*range(30, 50)] * 2 + [None]
    assert table["height"].to_pylist() == [20] * 40 + [None]
    assert (
        table["date"].to_pylist()[:40] == [datetime(2024, 2, 1 + row, 10) for row in range(20)] * 2
    )
    assert table["date"].to_pylist()[40] is None


def test_an_image_without_a_date_has_the_time_of_its_file(tmp_path):
    for name in ("text", "image"):
        path = tmp_path / f"{name}.png"
        path.write_text("no image")
        if name == "image":
            Image.new("L", (3, 5)).save(path)
        seconds = datetime(2021, 6, 1, 12, 30).timestamp()
        os.utime(path, (seconds, seconds))
        [row] = file_state_table([str(path)]).to_pylist()
        assert row["date"] == datetime(2021, 6, 1, 12, 30)
        assert (row["width"], row["height"]) == ((3, 5) if name == "image" else (None, None))


def test_metadata_is_added_to_files_that_did_not_change(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.png", "b.png", "c.png")]
    for path in paths:
        Image.new("L", (3, 5)).save(path)
    table = file_state_table(paths)
    Image.new("L", (7, 7)).save(paths[1])
    os.unlink(paths[2])
    added = add_file_metadata(table.select(["path", "bytes", "mtime_ns", "hash"]), paths)
    assert added.schema == table.schema
    assert added["width"].to_pylist() == [3, None, None]
    assert added["date"].to_pylist() == [table["date"].to_pylist()[0], None, None]
