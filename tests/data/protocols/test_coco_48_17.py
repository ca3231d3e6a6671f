"""COCO with 48 seen and 17 unseen labels: order of the labels, unknown targets, both test lists."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from protocol_miniatures import MINIATURES

from surelabel.data.protocols import PROTOCOLS
from surelabel.data.protocols.coco_48_17 import TEST_LIST, TRAIN_LIST, UNSEEN_LIST
from surelabel.data.protocols.definition.coco_instances import COCO_LABELS
from surelabel.errors import DataError

PROTOCOL = PROTOCOLS["coco-48-17"]
TRAIN, TEST = PROTOCOL.splits


@pytest.fixture
def folder(tmp_path):
    MINIATURES["coco-48-17"](tmp_path)
    return tmp_path


def change(file, function):
    """Change the content of a JSON file."""
    content = json.loads(file.read_text())
    function(content)
    file.write_text(json.dumps(content))


def test_seen_labels_are_followed_by_unseen_labels_each_in_alphabetical_order():
    seen, unseen = PROTOCOL.groups["seen"], PROTOCOL.groups["unseen"]
    assert (len(seen), len(unseen)) == (48, 17)
    assert PROTOCOL.labels == (*sorted(seen), *sorted(unseen))
    assert {*PROTOCOL.labels} < {*COCO_LABELS}


def test_unseen_labels_of_training_images_are_unknown(folder):
    targets = PROTOCOL.read_split(folder, TRAIN).targets
    assert not np.isnan(targets[:, :48]).any()
    assert np.isnan(targets[:, 48:]).all()


def test_a_different_list_of_the_zero_shot_test_is_a_defect(folder):
    change(folder / UNSEEN_LIST, lambda content: content["images"].pop())
    (defect,) = PROTOCOL.read_split(folder, TEST).defects
    assert defect.startswith("test_17_filtered.json must list the images of test_65_filtered.json")
    assert "differ in 1 image, such as COCO_val2014_" in defect


def test_other_unseen_labels_in_the_zero_shot_test_are_a_defect(folder):
    def remove_labels(content):
        content["images"][0][1] = []

    change(folder / UNSEEN_LIST, remove_labels)
    assert len(PROTOCOL.read_split(folder, TEST).defects) == 1


@pytest.mark.parametrize(("file", "split"), [(TRAIN_LIST, TRAIN), (TEST_LIST, TEST)])
@pytest.mark.parametrize("name", ["000000000001.jpg", "coco_val2014_1.jpg", "COCO_test2014_1.jpg"])
def test_images_of_another_dataset_are_refused(folder, file, split, name):
    def rename(content):
        content["images"][2][0] = f"/disk/{name}"

    change(folder / file, rename)
    with pytest.raises(DataError, match=rf"images\[2\] must be an image of COCO 2014.*'{name}'"):
        PROTOCOL.read_split(folder, split)


def test_a_list_of_other_classes_is_refused(folder):
    change(folder / TRAIN_LIST, lambda content: content["classes"].append("airplane"))
    with pytest.raises(DataError, match=r"must be the 48 labels.*got 49 classes, with \['airplane"):
        PROTOCOL.read_split(folder, TRAIN)
