"""One function opens an image wherever it is."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surelabel.errors import DataError
from surelabel.storage.stored_images import (
    is_stored_image_missing,
    missing_stored_images,
    open_parquet_table,
    open_stored_image,
    read_tar_contents,
    stored_image_status,
    stored_image_statuses,
)


@pytest.fixture
def images(tmp_path, tar_archive):
    """Return the paths of a file, a member and a cell with the same content."""
    (tmp_path / "a.jpg").write_bytes(b"content")
    tar_archive(tmp_path / "x.tar", [("b/0.jpg", b"other"), ("b/1.jpg", b"content")])
    pq.write_table(pa.table({"jpg": [b"other", b"content"]}), tmp_path / "t.parquet")
    return [f"{tmp_path}/{name}" for name in ("a.jpg", "x.tar/b/1.jpg", "t.parquet/jpg/1")]


def test_a_file_a_member_and_a_cell_are_opened_alike(images):
    for path in images:
        with open_stored_image(path) as stream:
            assert stream.read() == b"content"
        assert not is_stored_image_missing(path)


def test_the_status_of_a_member_is_that_of_its_archive(images):
    for path, file in zip(images, ("a.jpg", "x.tar", "t.parquet"), strict=True):
        status = os.stat(os.path.join(os.path.dirname(images[0]), file))
        assert stored_image_status(path) == (status.st_size, status.st_mtime_ns)


def test_missing_images_are_found_and_named(images):
    lost = [images[0] + "x", images[1] + "x", images[2] + "9", images[2] + "x"]
    assert missing_stored_images([*images, *lost]) == [3, 4, 5, 6]
    assert stored_image_statuses(lost) == [None] * 4
    reasons = (
        "No such file",
        "the archive has no member",
        r"the row number must be in \[0, 2\)",
        "the path must have the form TABLE.parquet",
    )
    for path, reason in zip(lost, reasons, strict=True):
        with (
            pytest.raises(DataError, match=f"^{path} cannot be read: {reason}.*Correct it.$"),
            open_stored_image(path, remedy="Correct it."),
        ):
            pass


def test_an_archive_that_was_replaced_is_read_again(images, tmp_path, tar_archive):
    assert read_tar_contents(f"{tmp_path}/x.tar").names == ["b/0.jpg", "b/1.jpg"]
    tar_archive(tmp_path / "x.tar", [("new.jpg", b"n"), ("b/1.jpg", b"new content")])
    os.utime(tmp_path / "x.tar", ns=(5, 5))
    with open_stored_image(images[1]) as stream:
        assert stream.read() == b"new content"


def test_an_image_of_a_damaged_archive_is_not_missing_but_cannot_be_read(images, tmp_path):
    (tmp_path / "x.tar").write_bytes(b"damaged")
    assert not is_stored_image_missing(images[1])
    with (
        pytest.raises(DataError, match=r"1\.jpg cannot be read: .*x\.tar must be a tar archive"),
        open_stored_image(images[1]),
    ):
        pass


def test_a_table_is_opened_without_its_rows(tmp_path, images):
    assert open_parquet_table(f"{tmp_path}/t.parquet").metadata.num_rows == 2
    with pytest.raises(DataError, match="cannot be read: No such file"):
        open_parquet_table(f"{tmp_path}/lost.parquet")
