"""MultiScene-Clean: its seeded split of labels, and damaged tables."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from attribute_miniatures import published, write_target_table

from surelabel.data.protocols import PROTOCOLS, check_protocol_folder
from surelabel.errors import DataError

PROTOCOL = PROTOCOLS["multiscene"]
NAMES = [published(name) for name in PROTOCOL.labels]
HEADER, ROW = ",".join(["image", *NAMES]), "img_1," + ",".join(["1"] + ["0"] * 35)


def read(folder):
    return PROTOCOL.read_split(folder, PROTOCOL.split("test"))


def test_the_unseen_labels_are_those_of_the_published_rule():
    order = np.random.default_rng(0).permutation(36)
    assert {*PROTOCOL.groups["unseen"]} == {PROTOCOL.labels[column] for column in order[:16]}
    assert len(PROTOCOL.groups["seen"]) == 20
    assert any("default_rng(0).permutation(36)" in note for note in PROTOCOL.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must contain a header and an image"),
        (HEADER, "must contain a header and an image"),
        (f"{ROW}\n{ROW}", "line 1: expected a header with the labels"),
        ("image\nimg_1", "line 1: expected a header with the labels"),
        (f"{HEADER}\n{ROW},1", "line 2: expected 36 targets; got 37"),
        (f"{HEADER}\nimg_1,0", "line 2: expected 36 targets; got 1"),
        (f"{HEADER}\n{ROW[:-1]}2", "line 2, column 'Sea': the target must be 0 or 1; got '2'"),
        (f"{HEADER}\n{ROW[:-1]}", "line 2, column 'Sea': the target must be 0 or 1; got ''"),
        (f"{HEADER}\n{ROW[:-1]}nan", "line 2, column 'Sea': the target must be 0 or 1"),
        (f"{HEADER}\n../{ROW}", "line 2: an image must have a relative path"),
        (f"{HEADER}\n{ROW[5:]}", "line 2: an image must have a relative path"),
        (f"{HEADER}\n{ROW}\n\n{ROW}", "line 4: each image must occur once.*also on line 2"),
        (f'{HEADER}\n"{ROW}', "must be a CSV file in UTF-8"),
        (f"{HEADER.replace('Beach', 'Pier')}\n{ROW}", "each label must occur once; got 'Pier'"),
    ],
)
def test_damaged_tables_are_named(tmp_path, text, message):
    (tmp_path / "Test.csv").write_text(text)
    with pytest.raises(DataError, match=message) as error:
        read(tmp_path)
    assert str(tmp_path / "Test.csv") in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (NAMES[::-1], "order of the columns of Tra.csv and Test.csv; got 'Sea' instead of 'Apron'"),
        (["Volcano", *NAMES[1:]], r"1 other label \(Volcano\), and 1 label.*\(Apron\)"),
    ],
)
def test_other_labels_are_refused(tmp_path, names, message):
    (tmp_path / "images").mkdir()
    for file in ("Tra", "Test"):
        write_target_table(tmp_path / f"{file}.csv", names, [f"img_{file}"], np.ones((1, 36)))
    with pytest.raises(DataError, match=message):
        check_protocol_folder(PROTOCOL, tmp_path)
