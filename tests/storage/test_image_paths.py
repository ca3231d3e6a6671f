"""Where a path ends that names a file, and where the path inside it begins."""

import os

import pytest

from surelabel.storage.image_paths import (
    absolute_image_path,
    is_container_path,
    is_object_url,
    join_image_path,
    split_container_path,
)


def test_a_member_is_split_from_its_archive_and_a_row_from_its_table(tmp_path):
    for name in ("a.tar", "b.TAR", "c.parquet"):
        (tmp_path / name).write_bytes(b"")
        path = str(tmp_path / name)
        assert split_container_path(f"{path}/x/1.jpg") == (path, "x/1.jpg")
        assert split_container_path(path) is None


def test_a_folder_named_like_an_archive_is_a_folder(tmp_path):
    (tmp_path / "x.tar").mkdir()
    (tmp_path / "x.tar" / "y.tar").write_bytes(b"")
    assert split_container_path(f"{tmp_path}/x.tar/1.jpg") is None
    inner = f"{tmp_path}/x.tar/y.tar"
    assert split_container_path(f"{inner}/1.jpg") == (inner, "1.jpg")


def test_an_archive_that_does_not_exist_is_no_container():
    assert split_container_path("lost.tar/1.jpg") is None


@pytest.mark.parametrize("path", ["s3://b/a.jpg", "gs://b/a.jpg", "hdfs://h:1/a.jpg"])
def test_urls_of_object_stores_have_no_other_absolute_path(path):
    assert is_object_url(path)
    assert absolute_image_path(path) == path
    assert join_image_path("/folder", path) == path


def test_paths_are_joined_to_folders_archives_and_urls():
    assert join_image_path("s3://b/x/", "a.jpg") == "s3://b/x/a.jpg"
    assert join_image_path("s3://b/x", os.path.abspath("a.jpg")) == os.path.abspath("a.jpg")
    assert join_image_path("x.tar", "a.jpg") == os.path.join("x.tar", "a.jpg")
    assert not is_object_url("https://b/a.jpg")
    assert is_container_path("x.Parquet")
    assert not is_container_path("x.tar.gz")
