"""RAP: the structure of its MATLAB file, identical labels and damaged files."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

sys.path.insert(0, str(Path(__file__).parent))
from attribute_miniatures import cells, published, rap_annotation

from surelabel.data.protocols import PROTOCOLS
from surelabel.errors import DataError

PROTOCOL = PROTOCOLS["rap"]
NAMES = PROTOCOL.labels
FILE = "RAP_annotation/RAP_annotation.mat"
IMAGES = [f"{row}.png" for row in range(6)]
TRAIN, TEST = np.array([0, 2, 4, 5]), np.array([1, 3])


def write(folder, targets=None, **fields):
    """Write a file with six images, of which fields are replaced."""
    if targets is None:
        targets = np.zeros((6, 51))
    content = rap_annotation(IMAGES, targets, [*map(published, NAMES)], TRAIN, TEST) | fields
    content = {key: value for key, value in content.items() if value is not None}
    (folder / "RAP_annotation").mkdir(exist_ok=True)
    savemat(folder / FILE, {"RAP_annotation": content})
    return folder


def read(folder, split="test"):
    return PROTOCOL.read_split(folder, PROTOCOL.split(split))


def partition(train, test):
    return cells([{"train_index": train, "test_index": test}] * 2)


def test_there_are_35_seen_and_16_unseen_labels():
    assert [len(PROTOCOL.groups[group]) for group in ("seen", "unseen")] == [35, 16]
    assert {*PROTOCOL.groups["seen"], *PROTOCOL.groups["unseen"]} == {*NAMES}


def test_labels_that_are_identical_in_all_images_are_reported(tmp_path):
    targets = np.zeros((6, 51))
    skirts = [NAMES.index(name) for name in ("Skirt", "Short Skirt", "Dress")]
    targets[np.ix_([1, 2, 3], skirts)] = 1
    rows = read(write(tmp_path, targets))
    assert list(rows.known_defects) == [
        "The labels Skirt, Short Skirt, Dress are identical in 2 images, with 2 positive "
        "images each."
    ]
    targets[3, skirts[0]] = 0
    (known,) = read(write(tmp_path, targets)).known_defects
    assert known.startswith("The labels Short Skirt, Dress are identical")


def test_misspelt_labels_are_corrected(tmp_path):
    rows = read(write(tmp_path))
    assert tuple(rows.names) == NAMES
    assert {"Pushing", "Other Attachment", "Single Shoulder Bag"} <= {*rows.names}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"attribute_exp": None}, "one structure with at least 7 fields; got 6"),
        ({"label": np.zeros((5, 51))}, r"targets must be .* 6 rows.* \(5, 51\)"),
        ({"label": np.zeros((6, 50))}, r"at least 51 columns; got the shape \(6, 50\)"),
        ({"label": np.full((6, 51), 2.0)}, "targets, row 1, column 1: the target must be 0 or 1"),
        ({"attribute_exp": cells([1] * 51)}, "attributes, cell 1: expected a text"),
        ({"attribute_exp": cells(["Hat"] * 51)}, "attributes: each label must occur once"),
        ({"imagesname": np.zeros((6, 1))}, "images must be a cell array with at least"),
        ({"imagesname": cells(["/a.png"] * 6)}, "images, cell 2: an image must have a relative"),
        ({"imagesname": cells(["a.png"] * 6)}, "'RAP_dataset/a.png' in rows 0 and 1"),
        ({"partition": np.zeros((5, 1))}, "partitions must be a cell array"),
        ({"partition": cells([1.0, 2.0])}, "partition 1 must be one structure with at least 2"),
        ({"partition": partition(TRAIN + 1, [7])}, "partition 1, test: .* from 1 to 6; got 7"),
        ({"partition": partition(TRAIN + 1, [0])}, "partition 1, test: .* from 1 to 6; got 0"),
        ({"partition": partition(TRAIN + 1, [1.5])}, "partition 1, test: .* got 1.5"),
        ({"partition": partition(TRAIN + 1, [np.nan])}, "partition 1, test: .* got nan"),
        ({"partition": partition(TRAIN + 1, ["a"])}, "test: expected the numbers of images"),
        ({"partition": partition(TRAIN + 1, [])}, "test: expected the numbers of images"),
    ],
)
def test_damaged_fields_are_named(tmp_path, fields, message):
    with pytest.raises(DataError, match=message) as error:
        read(write(tmp_path, **fields))
    assert FILE in str(error.value) or "RAP_dataset" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_variable_that_is_no_structure_is_refused(tmp_path):
    write(tmp_path)
    savemat(tmp_path / FILE, {"RAP_annotation": np.zeros((2, 2))})
    with pytest.raises(DataError, match="must be one structure with at least 7 fields; got 0"):
        read(tmp_path)
