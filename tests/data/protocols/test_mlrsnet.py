"""MLRSNet: tables with columns in any order, categories with wrong labels, and damaged tables."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from attribute_miniatures import published, write_mlrsnet, write_target_table

from surelabel.data.protocols import PROTOCOLS, check_protocol_folder
from surelabel.errors import DataError

PROTOCOL = PROTOCOLS["mlrsnet"]
NAMES = [published(name, " ") for name in PROTOCOL.labels]
HEADER, ROW = ",".join(["image", *NAMES]), "a.jpg," + ",".join(["1"] + ["0"] * 59)


@pytest.fixture
def folder(tmp_path):
    write_mlrsnet(tmp_path)
    return tmp_path


def read(folder, split="train"):
    return PROTOCOL.read_split(folder, PROTOCOL.split(split))


def test_the_unseen_labels_are_those_of_the_published_rule():
    order = np.random.default_rng(0).permutation(60)
    assert {*PROTOCOL.groups["unseen"]} == {PROTOCOL.labels[column] for column in order[:20]}
    assert len(PROTOCOL.groups["seen"]) == 40


def test_a_category_without_its_own_label_is_a_problem(folder):
    file = folder / "labels/island.csv"
    header, *rows = file.read_text().splitlines()
    names = header.split(",")
    names[1:] = sorted(names[1:], key=str.casefold)  # as if all files had the same order
    targets = np.array([[float(cell) for cell in row.split(",")[1:]] for row in rows])
    targets[:, names.index("island") - 1] = 0
    images = [row.split(",")[0] for row in rows]
    write_target_table(file, names[1:], images, targets)
    problems = check_protocol_folder(PROTOCOL, folder).problems
    assert len(problems) == 2
    assert problems[0] == (
        "train: labels/island.csv: no image of this category has the label island, out of 12 "
        "images; the labels of its columns are wrong."
    )


def test_splits_are_disjoint_and_have_a_fifth_of_each_category(folder):
    train, test = read(folder), read(folder, "test")
    assert not {*train.images} & {*test.images}
    assert (len(train.images), len(test.images)) == (8 + 6 + 10, 2 + 1 + 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must contain a header and an image"),
        (HEADER, "must contain a header and an image"),
        (f"{ROW}\n{ROW}", "line 1: expected a header with the labels"),
        (f"{HEADER},boat\n{ROW},1", r"line 1: expected the 60 labels; got 1 other label \('boat'"),
        (f"{HEADER.replace('beach', 'sand')}\n{ROW}", "line 1: each label must occur once"),
        (f"{HEADER[:-13]}\n{ROW[:-2]}", r"1 missing label \(wind turbine\)"),
        (f"{HEADER}\n{ROW},1", "line 2: expected 60 targets; got 61"),
        (f"{HEADER}\n{ROW[:-1]}-1", "line 2, column 'wind turbine': the target must be 0 or 1"),
        (f"{HEADER}\n{ROW[:-1]}x", "line 2, column 'wind turbine': .*got 'x'"),
        (f"{HEADER}\n../{ROW}", "line 2: an image must have a relative path"),
        (f"{HEADER}\n{ROW}\n{ROW}", "line 3: each image must occur once"),
        (f"{HEADER}\n\0{ROW}", "line 2: an image must have a relative path|must be a CSV file"),
    ],
)
def test_damaged_tables_are_named(folder, text, message):
    (folder / "labels/beach.csv").write_text(text)
    with pytest.raises(DataError, match=message) as error:
        read(folder)
    assert "labels/beach.csv" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_without_tables_is_refused(tmp_path):
    (tmp_path / "labels").mkdir()
    with pytest.raises(DataError, match="must contain one CSV file for each category; got none"):
        read(tmp_path)
