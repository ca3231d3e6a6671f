"""Labels in the JSON members beside the images of tar shards."""

import json

import numpy as np
import pytest

from surelabel.data import read_labels
from surelabel.data.labels.webdataset import (
    MAX_CLASS_BYTES,
    MAX_JSON_BYTES,
    tar_shards_of_folder,
)
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
        (
            [("1.jpg", b"x"), ("1.json", b" " * (MAX_JSON_BYTES + 1))],
            r"1\.json must have at most 1048576 bytes; got more",
        ),
    ],
)
def test_labels_that_are_missing_or_damaged_are_refused(tmp_path, tar_archive, members, message):
    path = tar_archive(tmp_path / "x.tar", members)
    with pytest.raises(DataError, match=message):
        read_labels(path)


def with_class(key, content):
    return [(f"{key}.jpg", b"image"), (f"{key}.cls", content)]


def by_name(labelled):
    targets = np.where(labelled.known, labelled.targets, -1).tolist()
    return labelled.names, targets


@pytest.mark.parametrize("file", ["classes.txt", "classnames.txt", "names.txt"])
def test_class_indices_have_the_labels_of_a_file_beside_the_archives(tmp_path, tar_archive, file):
    members = [*with_class("a/1", b"2"), *with_class("2", b" 0\n"), *with_class("3", b"hot dog")]
    path = tar_archive(tmp_path / "x.tar", members)
    (tmp_path / file).write_text("dog\r\ncat\r\nhot dog\r\n")
    for labelled in (read_labels(path), read_labels(tmp_path)):
        expected = (["dog", "cat", "hot dog"], [[0, 0, 1], [1, 0, 0], [0, 0, 1]])
        assert by_name(labelled) == expected
        assert labelled.paths == [f"{path}/{name}.jpg" for name in ("a/1", "2", "3")]
        assert (
            labelled.reading
            == f"classes of 3 images in .cls members; labels of the classes in {file}"
        )
    reordered = read_labels(path, names=["owl", "hot dog", "cat", "dog"])
    assert by_name(reordered)[1] == [[-1, 1, 0, 0], [-1, 0, 0, 1], [-1, 1, 0, 0]]
    with pytest.raises(DataError, match=r"must be in names, .*got 1 other label: 'hot dog'"):
        read_labels(path, names=["dog", "cat"])


def test_class_indices_without_a_file_have_the_labels_of_names(tmp_path, tar_archive):
    path = tar_archive(tmp_path / "x.tar", [*with_class("1", b"1"), *with_class("2", b"dog")])
    assert by_name(read_labels(path, names=["dog", "cat"])) == (["dog", "cat"], [[0, 1], [1, 0]])
    with pytest.raises(
        DataError, match=r"x\.tar/1\.cls: the label of the class index 1 .*Add clas"
    ):
        read_labels(path)


def test_class_names_need_no_file(tmp_path, tar_archive):
    path = tar_archive(
        tmp_path / "x.tar", [*with_class("1", b"b\xc3\xa4r"), *with_class("2", b"a-1")]
    )
    assert by_name(read_labels(path)) == (["a-1", "bär"], [[0, 1], [1, 0]])


def test_a_class_is_read_only_without_labels_in_json(tmp_path, tar_archive):
    members = [
        *with_class("1", b"dog"),
        ("1.json", b'{"labels": ["cat"], "absent": ["fox"]}'),
        *with_class("2", b"dog"),
        ("2.json", b'{"width": 3}'),
    ]
    path = tar_archive(tmp_path / "x.tar", members)
    labelled = read_labels(path)
    assert by_name(labelled) == (["cat", "dog", "fox"], [[1, -1, 0], [0, 1, 0]])
    assert labelled.reading == (
        "labels of 1 image in .json members; classes of 1 image in .cls members"
    )
    (tmp_path / "classes.txt").write_text("dog\ncat\nowl\n")
    with pytest.raises(DataError, match=r"got 1 other label: 'fox'"):
        read_labels(path)


def test_the_file_of_classes_is_not_read_for_labels_in_json(tmp_path, tar_archive):
    path = tar_archive(tmp_path / "x.tar", sample("1", {"labels": ["dog"]}))
    (tmp_path / "classes.txt").write_text("cat\ncat\n")
    assert by_name(read_labels(path)) == (["dog"], [[1]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"3", r"1\.cls: the class index must be less than 3, .*classes\.txt; got 3\."),
        (b"999999999", r"1\.cls: the class index must be less than 3"),
        (b"owl", r"1\.cls: the class must be one of the labels in .*classes\.txt; got 'owl'"),
        (b"-1", r"1\.cls must contain one class index from 0, or one class name .*got b'-1'"),
        (b"1.0", r"1\.cls must contain one class index"),
        (b"0 2", r"1\.cls must contain one class index"),
        (b"0\n2\n", r"1\.cls must contain one class index"),
        (b"9999999999", r"1\.cls must contain one class index"),
        (b"", r"1\.cls must contain one class index .*got b''"),
        (b"\xff\xfe", r"1\.cls must contain one class index"),
        (b"do\tg", r"1\.cls must contain one class index"),
        (b" " * (MAX_CLASS_BYTES + 1), r"1\.cls must have at most 1024 bytes; got more"),
    ],
)
def test_a_damaged_class_is_refused_with_its_member(tmp_path, tar_archive, content, message):
    path = tar_archive(tmp_path / "x.tar", with_class("1", content))
    (tmp_path / "classes.txt").write_text("dog\ncat\nhot dog\n")
    with pytest.raises(DataError, match=rf"x\.tar/{message}"):
        read_labels(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dog\n\ncat", r"classes\.txt, line 2: expected one label .*got ''"),
        ("dog\ncat\ndog", r"classes\.txt, line 3: expected .*'dog', which is also on line 1"),
        ("dog\nca\tt", r"classes\.txt, line 2: expected one label without control characters"),
        ("dog\n\udcff", r"classes\.txt must be text in UTF-8"),
    ],
)
def test_a_damaged_file_of_classes_is_refused_with_its_line(tmp_path, tar_archive, text, message):
    path = tar_archive(tmp_path / "x.tar", with_class("1", b"0"))
    (tmp_path / "classes.txt").write_text(text, errors="surrogateescape")
    with pytest.raises(DataError, match=message):
        read_labels(path)
    (tmp_path / "names.txt").write_text("dog\n")
    with pytest.raises(DataError, match=r"got classes\.txt and names\.txt\. Remove all"):
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
