"""Entries whose labels or counts are not verified: damaged files are named."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from protocol_miniatures import MINIATURES

from surelabel.data.protocols import PROTOCOLS, check_protocol_folder
from surelabel.errors import DataError

WIDER, TEST = "Anno/wider_attribute_test.json", "test-annotations-human-imagelabels.csv"
IMAGE = {"file_name": "test/a.jpg", "targets": []}
ATTRIBUTES = {"0": "male", "1": "hat"}


def check(name, folder):
    return check_protocol_folder(PROTOCOLS[name], folder)


@pytest.mark.parametrize(
    ("name", "file", "text", "message"),
    [
        ("coco-lt", "coco_lt_train.txt", "", "must contain at least one line"),
        ("coco-lt", "coco_lt_train.txt", "7\n", "line 1: expected an image of the annotations"),
        (
            "voc-lt",
            "longtail2012/img_id.txt",
            "2008_000001\n" * 2,
            "line 2: expected an image once",
        ),
        (
            "voc-lt",
            "longtail2012/img_id.txt",
            "x\n",
            "line 1: expected an image of the annotations",
        ),
        ("vispr", "test2017/2017_6.json", "{}", "2017_6.json: labels must be a list"),
        ("vispr", "test2017/2017_6.json", '{"labels": ["safe"]}', "such as a0_safe; got"),
        ("vispr", "test2017/2017_6.json", '{"labels": "a0_safe"}', "labels must be a list"),
        ("openimages-v6", "oidv6-classes-trainable.txt", "/m/09\n", "class 1: each class must"),
        ("openimages-v6", "oidv6-classes-trainable.txt", "/m/01\n/m/01\n", "different names"),
        ("openimages-v6", TEST, "", "must contain a verified label"),
        ("openimages-v6", TEST, "a,verification,/m/01,1\n", "line 1: expected ImageID,Source"),
        (
            "openimages-v6",
            TEST,
            "ImageID,Source,LabelName,Confidence\na,b,/m/01,2\n",
            "line 2: exp",
        ),
        (
            "openimages-v6",
            TEST,
            "ImageID,Source,LabelName,Confidence\n../a,b,/m/01,1\n",
            "line 2: an",
        ),
        ("wider-attribute", WIDER, "[]", "must be a JSON object with images and attribute_id_map"),
        (
            "wider-attribute",
            WIDER,
            json.dumps({"images": [IMAGE], "attribute_id_map": {"1": "hat"}}),
            "attribute_id_map must have the keys 0 to 0",
        ),
        (
            "wider-attribute",
            WIDER,
            json.dumps({"images": [{"targets": []}], "attribute_id_map": ATTRIBUTES}),
            "image 0: file_name must be a path",
        ),
        (
            "wider-attribute",
            WIDER,
            json.dumps({"images": [IMAGE | {"targets": 1}], "attribute_id_map": ATTRIBUTES}),
            "image 0: targets must be a list of persons",
        ),
        (
            "wider-attribute",
            WIDER,
            json.dumps(
                {"images": [IMAGE | {"targets": [{"attribute": [1, 2]}]}]}
                | {"attribute_id_map": ATTRIBUTES}
            ),
            "image 0: attribute must be 2 numbers, each 1, -1 or 0",
        ),
        (
            "wider-attribute",
            WIDER,
            json.dumps({"images": [IMAGE], "attribute_id_map": ATTRIBUTES}),
            "All splits must have the same labels in the same order; got other labels in test",
        ),
        ("vqa-v2", "v2_mscoco_val2014_annotations.json", "[]", "must be a JSON object"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, file, text, message):
    MINIATURES[name](tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(DataError, match=message) as error:
        check(name, tmp_path)
    assert "\n" not in str(error.value)


def test_a_person_with_an_attribute_makes_it_positive(tmp_path):
    MINIATURES["wider-attribute"](tmp_path)
    persons = [{"attribute": [1, 0, 0, -1]}, {"attribute": [-1, -1, 0, 0]}]
    content = {"images": [IMAGE | {"targets": persons}], "attribute_id_map": dict(
        zip("0123", "abcd", strict=True))}  # fmt: skip
    (tmp_path / WIDER).write_text(json.dumps(content))
    protocol = PROTOCOLS["wider-attribute"]
    rows = protocol.read_split(tmp_path, protocol.split("test"))
    np.testing.assert_array_equal(rows.targets, [[1, 0, np.nan, 0]])


def test_classes_of_open_images_with_one_name_have_their_identifiers(tmp_path):
    MINIATURES["openimages-v6"](tmp_path)
    assert list(check("openimages-v6", tmp_path).splits[1].rows.names) == [
        *("Bat (/m/01)", "Dog", "Bat (/m/03)"),
    ]


def test_the_counts_of_the_long_tailed_lists_are_stated():
    counts = {name: PROTOCOLS[name].splits[0].official for name in ("coco-lt", "voc-lt")}
    assert {name: count.value for name, count in counts.items()} == {
        "coco-lt": 1909,
        "voc-lt": 1142,
    }
    assert all("DistributionBalancedLoss" in count.source for count in counts.values())
