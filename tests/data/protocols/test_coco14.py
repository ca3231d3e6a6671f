"""COCO 2014 and 2017: the order of the labels is checked, and unlabelled images are left out."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from protocol_miniatures import MINIATURES

from surelabel.data.protocols import NOT_VERIFIED, PROTOCOLS, check_protocol_folder
from surelabel.errors import DataError


@pytest.fixture
def folder(tmp_path):
    MINIATURES["coco14"](tmp_path)
    return tmp_path


def exchange_names(folder, first, second):
    """Exchange the names of two categories in the annotations of val2014."""
    file = folder / "annotations/instances_val2014.json"
    content = json.loads(file.read_text())
    names = {first: second, second: first}
    for category in content["categories"]:
        category["name"] = names.get(category["name"], category["name"])
    file.write_text(json.dumps(content))


def test_another_order_of_the_labels_is_refused(folder):
    exchange_names(folder, "person", "bicycle")
    with pytest.raises(DataError, match=r"val2014 must have the order.*'bicycle' instead of 'per"):
        check_protocol_folder(PROTOCOLS["coco14"], folder)


def test_other_labels_are_refused(folder):
    exchange_names(folder, "airplane", "aeroplane")
    with pytest.raises(DataError, match=r"1 other label \(aeroplane\).*missing \(airplane\)"):
        check_protocol_folder(PROTOCOLS["coco14"], folder)


@pytest.mark.parametrize("matched", ["official", "evaluated"])
def test_the_labelled_images_are_compared_with_the_counts(folder, matched):
    protocol = PROTOCOLS["coco14"]
    rows = {split.name: protocol.read_split(folder, split) for split in protocol.splits}
    splits = tuple(
        replace(
            split,
            official=NOT_VERIFIED,
            evaluated=replace(
                split.evaluated, value=len(rows[split.name].images) + (matched == "official")
            ),
        )
        for split in protocol.splits
    )
    check = check_protocol_folder(replace(protocol, splits=splits), folder)
    counts = [split.matched_counts for split in check.splits]
    expected = ["as evaluated"] if matched == "evaluated" else []
    assert counts == [expected, expected]
    assert len(check.problems) == (0 if expected else 2)
    assert len(list((folder / "val2014").iterdir())) == len(rows["val2014"].images) + 1
