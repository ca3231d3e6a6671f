import json
import os

import pytest

from surelabel.data.captions import (
    CAPTION_FORMATS,
    has_captioned_images,
    read_captions,
    read_pairs,
)
from surelabel.errors import DataError

COCO = {
    "images": [{"id": 1, "file_name": "a.jpg"}],
    "annotations": [{"image_id": 1, "caption": "a dog"}],
}
LINE = '{"image": "a.jpg", "caption": "a dog"}\n'
TOKEN = "a.jpg#0\ta dog\n"
SCENE = '{"path": "a.jpg", "captions": [{"text": "a dog"}]}\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "image,caption\na.jpg,a dog\n"),
        ("captions.txt", "\ufeffimage,caption\na.jpg,a dog\n"),
        ("x.CSV", '"image","caption"\na.jpg,a dog\n'),
        ("x", '"image","caption"\na.jpg,a dog\n'),
        ("x.json", json.dumps(COCO)),
        ("x.json", json.dumps(COCO, indent=2)),
        ("x.txt", json.dumps(COCO)),
        ("x.jsonl", SCENE),
        ("x.json", SCENE),
        ("x.token", TOKEN),
        ("Flickr8k.token.txt", TOKEN),
        ("x.jsonl", LINE),
        ("x.txt", LINE),
        ("x.json", LINE.replace('"a dog"', '["a dog"]').replace('"caption"', '"captions"')),
    ],
)
def test_every_format_with_images_is_recognized(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    captions = read_captions(tmp_path / name)
    assert captions.texts == ["a dog"]
    assert captions.paths == [str(tmp_path / "a.jpg")]
    assert read_captions(tmp_path / name, images_root="r").paths == ["r/a.jpg"]
    (tmp_path / "a.jpg").touch()
    pairs = read_pairs(tmp_path / name)
    assert (pairs.paths, pairs.captions) == ([str(tmp_path / "a.jpg")], ["a dog"])
    with pytest.raises(
        DataError, match=r"must exist; 1 of \d files are missing, such as 'r/a\.jpg'"
    ):
        read_pairs(tmp_path / name, images_root="r")


@pytest.mark.parametrize("name", ["x.txt", "x.cap", "x"])
def test_other_lines_are_captions_without_images(tmp_path, name):
    (tmp_path / name).write_text("image of a dog, running\na cat\n")
    captions = read_captions(tmp_path / name)
    assert captions.texts == ["image of a dog, running", "a cat"]
    assert captions.paths is None


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("x.csv", "image,caption\na.jpg,a dog\n", True),
        ("x.csv", '\ufeff"image", "caption"\na.jpg,a dog\n', True),
        ("x.txt", "image,caption\na.jpg,a dog\n", True),
        ("x.json", json.dumps(COCO), True),
        ("x.csv", "path,dog\na.jpg,1\n", False),
        ("x.csv", "image,dog\na.jpg,1\n", False),
        ("x.json", json.dumps(COCO | {"annotations": [{"image_id": 1, "category_id": 2}]}), False),
        ("x.json", json.dumps(COCO | {"annotations": []}), False),
        ("x.json", json.dumps({"annotations": 3}), False),
        ("x.txt", "a dog\n", False),
        ("x.jsonl", SCENE, False),
        ("x.jsonl", LINE, True),
        ("x.jsonl", '{"path": "a.jpg", "labels": ["dog"]}', False),
        ("x.token", TOKEN, True),
    ],
)
def test_captions_of_images_differ_from_labels_and_from_captions_alone(
    tmp_path, name, text, expected
):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert has_captioned_images(tmp_path / name) is expected


def test_the_table_has_the_six_formats():
    assert sorted(CAPTION_FORMATS) == ["coco", "csv", "flickr", "jsonl", "scenes", "text"]


def test_a_text_file_has_no_pairs(tmp_path):
    (tmp_path / "x.txt").write_text("a dog\n")
    with pytest.raises(DataError, match=r"x\.txt contains captions without images"):
        read_pairs(tmp_path / "x.txt")


def test_labels_are_no_pairs(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"path": "a.jpg", "labels": ["dog"]}\n')
    with pytest.raises(DataError, match=r"x\.jsonl, line 1: expected .* as in scenes\.jsonl"):
        read_pairs(tmp_path / "x.jsonl")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("x.json", b"", "must be a COCO file in JSON"),
        ("x.json", b"[1, 2]", "must be a COCO file with one JSON object; got a value of type list"),
        ("x.json", b'{"path": "a.jpg", "labels": ["dog"]}', "a COCO file with images .* 'images'"),
        ("x.txt", b"path,dog\na.jpg,1\n", "the first line must be image,caption; got 'path,dog'"),
        ("x.txt", b"PK\x03\x04\xff\xfe", "must be text in UTF-8"),
        ("x.csv", b"dog,cat\n", "the first line must be image,caption; got 'dog,cat'"),
    ],
)
def test_another_kind_of_file_is_refused(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_captions(tmp_path / name)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"lost\.json does not exist\. Give the path of a file"):
        read_captions(tmp_path / "lost.json")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="expected a regular file; got a folder"):
        read_captions(tmp_path)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json", "a.txt"])
def test_a_named_pipe_is_refused_without_waiting(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=rf"{name} cannot be read: .* got a named pipe\."):
        read_captions(tmp_path / name)
