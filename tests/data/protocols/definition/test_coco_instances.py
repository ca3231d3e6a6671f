"""Instance annotations of COCO: order of the labels, images without a label, invalid files."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from coco_miniatures import CATEGORY_IDS, instances_of, write_json

from surelabel.data.protocols import ProtocolSplit
from surelabel.data.protocols.definition.coco_instances import (
    COCO_LABELS,
    coco_instance_files,
    read_coco_instance_split,
)
from surelabel.errors import DataError

SPLIT = ProtocolSplit("val2014", "test")
FILE = "annotations/instances_val2014.json"


def small_content():
    """Return two images with a label, and one without, of three categories."""
    targets = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    content = instances_of(["a.jpg", "b.jpg", "c.jpg"], targets, COCO_LABELS[:3] + ("",) * 77)
    content["categories"] = [{"id": 9, "name": "boat"}, {"id": 2, "name": "bicycle"}]
    content["categories"] += [{"id": 90, "name": "toothbrush"}]
    for annotation in content["annotations"]:
        annotation["category_id"] = {1: 2, 2: 9, 3: 90}[annotation["category_id"]]
    return content


def test_labels_have_the_order_of_the_ids_and_unlabelled_images_are_left_out(tmp_path):
    write_json(tmp_path / FILE, small_content())
    rows = read_coco_instance_split(tmp_path, SPLIT)
    assert list(rows.names) == ["bicycle", "boat", "toothbrush"]
    assert list(rows.images) == ["val2014/a.jpg", "val2014/c.jpg"]
    assert rows.targets.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert not rows.defects


def test_crowd_annotations_are_objects(tmp_path):
    content = small_content()
    content["annotations"].append({"id": 70, "image_id": 2, "category_id": 2, "iscrowd": 1})
    write_json(tmp_path / FILE, content)
    rows = read_coco_instance_split(tmp_path, SPLIT)
    assert "val2014/b.jpg" in rows.images


def test_the_files_are_those_of_both_splits():
    assert [file.path for file in coco_instance_files(2017)] == [
        "annotations/instances_train2017.json",
        "train2017",
        "annotations/instances_val2017.json",
        "val2017",
    ]


def test_coco_has_80_categories_with_increasing_ids():
    assert len(set(COCO_LABELS)) == len(set(CATEGORY_IDS)) == 80
    assert sorted(CATEGORY_IDS) == CATEGORY_IDS


def changed(key, number, **values):
    """Return content in which some fields of an entry of a list differ."""
    content = small_content()
    content[key][number].update(values)
    return content


def without(key, number, field):
    """Return content in which a field of an entry of a list is missing."""
    content = small_content()
    del content[key][number][field]
    return content


INVALID = {
    "no JSON object": ([1], "must be a COCO file with one JSON object"),
    "no images": ({"categories": [], "annotations": []}, "missing or invalid entry: 'images'"),
    "no categories": ({"images": [], "annotations": []}, "missing or invalid entry: 'categories'"),
    "images of another type": ({**small_content(), "images": 3}, "missing or invalid entry"),
    "image without id": (without("images", 0, "id"), "missing or invalid entry: 'id'"),
    "image without file": (without("images", 1, "file_name"), "invalid entry: 'file_name'"),
    "repeated image id": (changed("images", 1, id=1), "the id 1 is repeated"),
    "repeated file": (changed("images", 2, file_name="a.jpg"), "got 'val2014/a.jpg' in rows 0"),
    "file in another folder": (changed("images", 0, file_name="../a.jpg"), r"got '../a\.jpg'"),
    "hidden file": (changed("images", 0, file_name=".a.jpg"), r"got '\.a\.jpg'"),
    "empty file name": (changed("images", 0, file_name=""), "got ''"),
    "repeated category": (changed("categories", 0, name="bicycle"), "'bicycle' is repeated"),
    "category ids of two types": (changed("categories", 0, id="9"), "unknown ids|invalid entry"),
    "unknown category": (changed("annotations", 0, category_id=7), "with category_id 7"),
    "unknown image": (changed("annotations", 0, image_id=99), "image_id 99"),
    "annotation without category": (without("annotations", 0, "category_id"), "'category_id'"),
    "no annotation": ({**small_content(), "annotations": []}, "at least one annotated object"),
}


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_file_is_named_with_its_element(case, tmp_path):
    content, message = INVALID[case]
    write_json(tmp_path / FILE, content)
    with pytest.raises(DataError, match=message) as error:
        read_coco_instance_split(tmp_path, SPLIT)
    assert "\n" not in str(error.value)
    if case != "repeated file":
        assert FILE in str(error.value)


def test_truncated_text_is_named(tmp_path):
    write_json(tmp_path / FILE, {})
    (tmp_path / FILE).write_text(json.dumps(small_content())[:-20])
    with pytest.raises(DataError, match=re.escape(FILE)):
        read_coco_instance_split(tmp_path, SPLIT)
