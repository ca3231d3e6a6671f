"""Objects on a server with the interface of S3, also in forked processes."""

import multiprocessing
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surelabel.errors import DataError
from surelabel.storage import object_stores
from surelabel.storage.object_stores import (
    is_cached_object_file,
    list_objects,
    object_status,
    open_object,
    read_object,
    spooled_object,
)
from surelabel.storage.stored_images import (
    missing_stored_images,
    open_stored_image,
    stored_image_status,
)


@pytest.fixture(scope="module")
def photos(object_store, tmp_path_factory):
    """Return URLs of an object, a member and a cell with the same content."""
    import io
    import tarfile

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("1.jpg")
        entry.size = 7
        tar.addfile(entry, io.BytesIO(b"content"))
    table = tmp_path_factory.mktemp("table") / "t.parquet"
    pq.write_table(pa.table({"jpg": [b"content"]}), table)
    for key, content in (
        ("stored/a b.jpg", b"content"),
        ("stored/.hidden/b.jpg", b"hidden"),
        ("stored/x.tar", archive.getvalue()),
        ("stored/t.parquet", table.read_bytes()),
    ):
        object_store.put_object(Bucket="photos", Key=key, Body=content)
    root = "s3://photos/stored"
    return [f"{root}/a b.jpg", f"{root}/x.tar/1.jpg", f"{root}/t.parquet/jpg/0"]


def read_all(paths):
    contents = []
    for path in paths:
        with open_stored_image(path) as stream:
            contents.append(stream.read())
    return contents


def test_objects_members_and_cells_are_read(photos):
    assert read_all(photos) == [b"content"] * 3
    assert read_object(photos[0]) == b"content"
    assert object_status(photos[0]).size == 7
    assert stored_image_status(photos[1]).size == object_status("s3://photos/stored/x.tar").size
    assert missing_stored_images([*photos, photos[0] + "x"]) == [3]
    assert is_cached_object_file(photos[0])
    assert not is_cached_object_file(photos[0] + "x")


def test_a_forked_process_reads_after_its_parent_has_read(photos):
    assert read_all(photos) == [b"content"] * 3
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        assert pool.map(read_all, [photos] * 4, chunksize=1) == [[b"content"] * 3] * 4


def test_a_prefix_is_listed_without_hidden_objects(photos):
    names = ["a b.jpg", "t.parquet", "x.tar"]
    expected = [f"s3://photos/stored/{name}" for name in names]
    assert list(list_objects("s3://photos/stored/")) == expected
    assert list(list_objects("s3://photos/stored")) == expected
    assert list(list_objects(photos[0])) == [photos[0]]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://photos/lost/", r"s3://photos/lost/ cannot be read: the object or folder does not"),
        ("s3://no-bucket/x", r"cannot be read: the bucket s3://no-bucket does not exist"),
        ("s3://", r"must contain a bucket"),
    ],
)
def test_what_is_not_there_is_named_on_one_line(photos, url, message):
    with pytest.raises(DataError, match=message) as error:
        list(list_objects(url))
    assert "\n" not in str(error.value)
    with pytest.raises(DataError, match=r"does not exist|must contain a bucket"):
        open_object(url)


def test_a_copy_of_an_archive_has_no_name_and_the_oldest_is_closed(photos, monkeypatch, tmp_path):
    monkeypatch.setattr(object_stores.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(object_stores, "MAX_SPOOLED", 1)
    monkeypatch.setattr(object_stores, "_spooled", {})
    copy = spooled_object("s3://photos/stored/x.tar")
    assert spooled_object("s3://photos/stored/x.tar") is copy
    assert not list(tmp_path.iterdir())
    assert os.pread(copy.descriptor, 5, 0) == b"1.jpg"
    descriptor = copy.descriptor
    del copy
    spooled_object(photos[0])
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_server_that_does_not_answer_is_an_error_of_one_line(photos, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(object_stores, "ATTEMPTS", 1)
    monkeypatch.setattr(object_stores, "_filesystems", {})
    with pytest.raises(DataError, match=r"the object store does not respond [^\n]*$"):
        list(list_objects("s3://photos/stored/"))
