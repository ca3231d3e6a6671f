"""Lists of images of RAM: labels for each object, absolute paths, invalid files."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from coco_miniatures import write_json

from surelabel.data.protocols.definition.image_list_json import read_image_list
from surelabel.errors import DataError

CLASSES = ("cat", "dog", "tie")


def content_of(*entries, classes=("tie", "dog", "cat")):
    return {"images": list(entries), "classes": list(classes)}


def test_labels_count_once_and_paths_are_file_names(tmp_path):
    file = tmp_path / "list.json"
    entries = [
        ["/disk/x/b.jpg", ["tie", "cat", "tie"]],
        ["a.jpg", []],
        ["D:\\coco\\c.jpg", ["dog"]],
    ]
    write_json(file, content_of(*entries))
    rows = read_image_list(file, CLASSES)
    assert list(rows.images) == ["b.jpg", "a.jpg", "c.jpg"]
    assert rows.names == CLASSES
    assert rows.targets.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert not rows.defects


def test_labels_that_are_no_class_are_a_defect(tmp_path):
    file = tmp_path / "list.json"
    write_json(file, content_of(["a.jpg", ["cat", "cup", "bus", "cup"]]))
    rows = read_image_list(file, CLASSES)
    assert rows.targets.tolist() == [[1, 0, 0]]
    (defect,) = rows.defects
    assert defect.startswith("list.json has 3 objects with a label that is no class")
    assert "such as 'cup'" in defect


A = ["a.jpg", ["cat"]]
INVALID = {
    "list": ([A], "must be one JSON object with images and classes"),
    "no classes": ({"images": [A]}, "must be one JSON object with images and classes"),
    "no images": ({"classes": ["cat"]}, "must be one JSON object with images and classes"),
    "empty images": (content_of(), "images must be a list with at least one image"),
    "images by name": ({"images": {"a.jpg": []}, "classes": [*CLASSES]}, "images must be a list"),
    "classes of another type": (content_of(A, classes=[1, 2]), "classes must be a list of labels"),
    "missing class": (content_of(A, classes=["cat", "dog"]), "2 classes, without 'tie'"),
    "unknown class": (content_of(A, classes=[*CLASSES, "cup"]), r"4 classes, with \['cup'\]"),
    "repeated class": (content_of(A, classes=[*CLASSES, "cat"]), "each once; got 4 classes"),
    "entry without labels": (content_of(A, ["b.jpg"]), r"images\[1\] must be a path and a list"),
    "entry as text": (content_of("a.jpg"), r"images\[0\] must be a path and a list"),
    "path of another type": (content_of([7, []]), r"images\[0\] must have the path of an image"),
    "path of a folder": (content_of(["x/", []]), r"images\[0\] must have the path of an image"),
    "parent folder": (content_of(["x/..", []]), r"images\[0\] must have the path of an image"),
    "labels as text": (content_of(["a.jpg", "cat"]), r"images\[0\] must have a list of labels"),
    "label of another type": (content_of(["a.jpg", [1]]), "must have a list of labels"),
    "repeated image": (content_of(A, ["x/a.jpg", []]), "got 'a.jpg' in rows 0 and 1"),
}


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_list_is_named_with_its_element(case, tmp_path):
    content, message = INVALID[case]
    write_json(tmp_path / "list.json", content)
    with pytest.raises(DataError, match=message) as error:
        read_image_list(tmp_path / "list.json", CLASSES)
    assert "\n" not in str(error.value)
    if case != "repeated image":
        assert str(tmp_path / "list.json") in str(error.value)


def test_a_missing_list_is_named(tmp_path):
    with pytest.raises(DataError, match=re.escape(f"{tmp_path / 'list.json'} cannot be read")):
        read_image_list(tmp_path / "list.json", CLASSES)
