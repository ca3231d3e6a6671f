"""Images in archives, tables and object stores are listed like those of a folder."""

import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surelabel.data import collection, find_images, open_image
from surelabel.data.container_images import (
    collect_images,
    is_image_container_source,
    list_images_of_container,
    list_images_of_objects,
)
from surelabel.data.image_sources import describe_ignored_files
from surelabel.errors import DataError
from surelabel.recognizer import Recognizer


def jpeg(row=0):
    return Path(collection("scenes-80", split="test").paths[row]).read_bytes()


@pytest.fixture
def shards(tmp_path, tar_archive):
    """Write two shards, a table and a file into a folder, and return the paths of the images."""
    tar_archive(tmp_path / "s-0.tar", [("0.jpg", jpeg(0)), ("0.json", b"{}"), ("a/1.JPG", jpeg(1))])
    tar_archive(tmp_path / "s-1.tar", [("0.jpg", jpeg(2))])
    pq.write_table(pa.table({"n": [1], "image": [jpeg(3)]}), tmp_path / "t.parquet")
    (tmp_path / "z.jpg").write_bytes(jpeg(4))
    names = ("s-0.tar/0.jpg", "s-0.tar/a/1.JPG", "s-1.tar/0.jpg", "t.parquet/image/0", "z.jpg")
    return [f"{tmp_path}/{name}" for name in names]


def test_a_folder_is_searched_with_its_archives_and_tables(shards, tmp_path):
    assert find_images([tmp_path]) == shards
    assert [open_image(path, min_side=128).size for path in shards] == [(128, 128)] * 5


def test_archives_tables_members_and_cells_are_sources(shards, tmp_path):
    sources = ["s-0.tar", "s-1.tar/0.jpg", "t.parquet/image", "z.jpg"]
    assert find_images([tmp_path / source for source in sources]) == shards
    assert find_images(shards) == shards
    with pytest.raises(DataError, match=r"s-0\.tar/lost\.jpg does not exist\. Check"):
        find_images([tmp_path / "s-0.tar/lost.jpg"])


def test_a_list_can_name_archives_and_members(shards, tmp_path):
    (tmp_path / "l.txt").write_text("s-0.tar\ns-1.tar/0.jpg\nt.parquet\nz.jpg\n")
    assert find_images([tmp_path / "l.txt"]) == shards


@pytest.mark.filterwarnings("ignore:These . images are out of distribution")
def test_equal_images_are_predicted_equally_wherever_they_are(shards):
    recognizer = Recognizer.zero_shot("tiny-vit", ["lion", "dog"])
    single = [recognizer.predict([path], workers=0).logits[0].tolist() for path in shards]
    together = recognizer.predict(shards, workers=1).logits
    for row, logits in zip(together.tolist(), single, strict=True):
        assert row == pytest.approx(logits, abs=1e-4)


def test_a_table_with_several_image_columns_is_refused_with_the_columns(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [b"x"], "b": [b"y"]}), path)
    with pytest.raises(DataError, match=rf"got 2 image columns\. Give {path}/a or {path}/b\."):
        find_images([path])
    assert find_images([f"{path}/b"]) == [f"{path}/b/0"]
    with pytest.raises(
        DataError, match=r"'c' is not an image column of .*t\.parquet\. Choose one of 'a', 'b'"
    ):
        find_images([f"{path}/c"])


def test_a_table_without_image_columns_is_ignored_in_a_folder_and_refused_as_a_source(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    (tmp_path / "z.jpg").write_bytes(jpeg())
    with pytest.warns(UserWarning, match=r"1 file without an image suffix is ignored: 1 \.parquet"):
        assert find_images([tmp_path]) == [f"{tmp_path}/z.jpg"]
    with pytest.raises(
        DataError, match=r"must contain one image column .* got 0 image columns\. Give a table"
    ):
        list_images_of_container(f"{tmp_path}/t.parquet")


def test_a_compressed_archive_is_refused_with_the_command(tmp_path):
    (tmp_path / "x.tar.gz").write_bytes(b"\x1f\x8b123456")
    with pytest.raises(DataError, match=r"compressed archive.*gunzip x\.tar\.gz"):
        find_images([tmp_path / "x.tar.gz"])
    assert is_image_container_source(f"{tmp_path}/x.tar.gz")
    assert not is_image_container_source("lost.tar")


def test_other_members_are_counted_if_no_image_is_among_them(tmp_path, tar_archive):
    path = tar_archive(tmp_path / "x.tar", [("a.txt", b"x"), ("b.txt", b"y")])
    assert collect_images([path]) == ([], {".txt": 2})
    with pytest.raises(DataError, match=r"0 images among 2 files in .*: 2 \.txt\."):
        find_images([path])


def test_links_in_archives_are_described():
    text = "2 archive members are ignored: links, devices or sparse files."
    assert describe_ignored_files({"link in an archive": 2}) == text


@pytest.mark.filterwarnings("ignore:These . images are out of distribution")
def test_an_object_store_is_searched_like_a_folder(object_store, shards, tmp_path):
    for name in ("s-0.tar", "t.parquet", "z.jpg"):
        key = f"listed/{name}"
        object_store.put_object(Bucket="photos", Key=key, Body=(tmp_path / name).read_bytes())
    names = ("s-0.tar/0.jpg", "s-0.tar/a/1.JPG", "t.parquet/image/0", "z.jpg")
    urls = [f"s3://photos/listed/{name}" for name in names]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_images(["s3://photos/listed/"]) == urls
    for url in (urls[0], urls[2], urls[3]):
        assert list_images_of_objects(url)[0] == [url]
    assert find_images(["s3://photos/listed/t.parquet/image"]) == [urls[2]]
    expected = Recognizer.zero_shot("tiny-vit", ["lion", "dog"]).predict(shards, workers=0).logits
    stored = Recognizer.zero_shot("tiny-vit", ["lion", "dog"]).predict(urls, workers=2).logits
    assert stored.tolist() == [
        pytest.approx(expected[row].tolist(), abs=1e-4) for row in (0, 1, 3, 4)
    ]
