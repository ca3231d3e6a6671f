"""Labels in the JSON members beside the images of tar shards."""

import json

import numpy as np
import pytest

from surelabel.data import read_labels
from surelabel.data.labels.webdataset import tar_shards_of_folder
from surelabel.errors import DataError


def sample(key, labels):
    return [(f"{key}.jpg", b"image"), (f"{key}.json", json.dumps(labels).encode())]


def test_shards_of_a_folder_are_one_dataset(tmp_path, tar_archive):
    tar_archive(tmp_path / "s-1.tar", sample("a/2", {"labels": ["cat"], "absent": ["dog"]}))
    first = sample("1.left", {"labels": ["x"]})[:1] + sample("1", {"labels": ["dog"], "w": 5})
    tar_archive(tmp_path / "s-0.tar", first)
    labelled = read_labels(tmp_path)
    names = ["s-0.tar/1.left.jpg", "s-0.tar/1.jpg", "s-1.tar/a/2.jpg"]
    assert labelled.paths == [f"{tmp_path}/{name}" for name in names]
    assert labelled.names == ["cat", "dog"]
    assert labelled.targets.tolist() == [[0, 1], [0, 1], [1, 0]]
    assert read_labels(tmp_path / "s-1.tar", names=["fox", "dog", "cat"]).known.tolist() == [
        [False, True, True]
    ]
    assert tar_shards_of_folder(tmp_path) == [tmp_path / "s-0.tar", tmp_path / "s-1.tar"]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (sample("1", {})[:1], r"1\.jpg: the labels of this image must be in the member 1\.json"),
        (sample("1", {"labels": "dog"}), r"1\.json: expected .*got b'.*Correct this member"),
        (sample("1", ["dog"]), r"1\.json: expected"),
        ([("1.jpg", b"x"), ("1.json", b"{")], r"1\.json must be a JSON object; got"),
        (sample("1", {"labels": ["a\tb"]}), r"1\.json: a label must not contain a line break"),
        ([("1.txt", b"x")], r"must contain tar archives with images; got no image"),
    ],
)
def test_labels_that_are_missing_or_damaged_are_refused(tmp_path, tar_archive, members, message):
    path = tar_archive(tmp_path / "x.tar", members)
    with pytest.raises(DataError, match=message):
        read_labels(path)


def test_a_label_file_names_members_and_is_equal_to_json_members(tmp_path, tar_archive):
    members = [*sample("1", {"labels": ["dog"]}), *sample("2", {"labels": ["cat"]})]
    path = tar_archive(tmp_path / "x.tar", members)
    (tmp_path / "l.csv").write_text("path,labels\nx.tar/1.jpg,dog\nx.tar/2.jpg,cat\n")
    (tmp_path / "m.csv").write_text("path,labels\n1.jpg,dog\n2.jpg,cat\n")
    expected = read_labels(path)
    for labelled in (
        read_labels(tmp_path / "l.csv"),
        read_labels(tmp_path / "m.csv", images_root=path),
    ):
        assert labelled.paths == expected.paths
        assert np.array_equal(labelled.targets, expected.targets)
    (tmp_path / "l.csv").write_text("path,labels\nx.tar/1.jpg,dog\nx.tar/3.jpg,cat\n")
    with pytest.raises(DataError, match=r"All images of .* 1 of 2 missing: '.*x\.tar/3\.jpg'"):
        read_labels(tmp_path / "l.csv")


def test_images_have_no_other_root(tmp_path, tar_archive):
    path = tar_archive(tmp_path / "x.tar", sample("1", {"labels": ["dog"]}))
    with pytest.raises(DataError, match="images_root cannot be given"):
        read_labels(path, images_root=tmp_path)


def test_a_label_file_names_objects(tmp_path, object_store):
    object_store.put_object(Bucket="photos", Key="labelled/1.jpg", Body=b"x")
    (tmp_path / "l.csv").write_text("path,dog\ns3://photos/labelled/1.jpg,1\n")
    (tmp_path / "m.csv").write_text("path,dog\n1.jpg,1\n")
    assert read_labels(tmp_path / "l.csv").paths == ["s3://photos/labelled/1.jpg"]
    relative = read_labels(tmp_path / "m.csv", images_root="s3://photos/labelled")
    assert relative.paths == ["s3://photos/labelled/1.jpg"]
    (tmp_path / "l.csv").write_text("path,dog\ns3://photos/labelled/2.jpg,1\n")
    with pytest.raises(DataError, match=r"1 of [12] missing: 's3://photos/labelled/2\.jpg'"):
        read_labels(tmp_path / "l.csv")
