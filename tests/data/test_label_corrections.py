import csv

import numpy as np
import pytest

from surelabel.data import correct_labels, read_label_corrections, write_label_corrections
from surelabel.errors import DataError
from surelabel.records import LabelledFeatures, LabelledImages, LabelledScores


@pytest.fixture
def file(tmp_path):
    return tmp_path / "corrections.csv"


@pytest.fixture
def vectors():
    return LabelledFeatures(np.eye(3), ["dog", "=cat"], [[1, 0], [0, 1], [np.nan, 0]])


def fill(file, *corrected, delimiter=","):
    rows = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))
    for row, text in zip(rows[1:], corrected, strict=True):
        row[-1] = text
    with file.open("w", encoding="utf-8-sig", newline="") as output:  # as a spreadsheet program
        csv.writer(output, delimiter=delimiter).writerows(rows)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_filled_rows_change_targets_and_other_rows_keep_them(file, vectors, delimiter):
    cells = (("row 0", "dog"), ("row 1", "=cat"), ("row 2", "dog"), ("row 2", "=cat"))
    write_label_corrections(file, [(*cell, 1, 0.01, 0.9) for cell in cells])
    fill(file, "0", "", "TRUE", "unknown", delimiter=delimiter)
    corrected = correct_labels(vectors, file)
    np.testing.assert_array_equal(corrected.targets, [[0, 0], [0, 1], [1, 0]])
    np.testing.assert_array_equal(corrected.known, [[1, 1], [1, 1], [1, 0]])
    assert vectors.targets[0, 0] == 1


def test_images_are_found_by_their_path(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    images = LabelledImages(["a.jpg", "a.jpg", "b.jpg"], ["dog"], [[0], [0], [0]])
    write_label_corrections(file, [(str(tmp_path / "a.jpg"), "dog", 0, 0.9, 0.9)])
    fill(file, "1")
    assert correct_labels(images, file).targets.tolist() == [[1], [1], [0]]


def test_scores_remain_scores(file):
    scores = LabelledScores([[1.0], [-1.0]], "logits", columns=["dog"], targets=[[1], [0]])
    write_label_corrections(file, [("row 0", "dog", 1, 0.1, 0.9)])
    fill(file, "0")
    corrected = correct_labels(scores, file)
    assert (corrected.kind, corrected.targets.tolist()) == ("logits", [[0], [0]])


def test_an_unchecked_file_has_no_corrections(file):
    write_label_corrections(file, [("row 0", "dog", 1, 0.1, 0.9)])
    assert read_label_corrections(file) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "path,label\n",
            "must contain the columns path, label, corrected; the column corrected is missing",
        ),
        (
            "path,label,corrected\nrow 0,dog,maybe\n",
            "line 2: the cell in the column corrected must be 1, 0, unknown",
        ),
        ("path,label,corrected\nrow 0,dog\n", "line 2: expected 3 columns .* got 2"),
        ("path,label,corrected\nrow 0,dogs,1\n", "each label must be in the dataset; got 'dogs'"),
        ("path,label,corrected\nrow 9,dog,1\n", "each path must be in the dataset; got 'row 9'"),
        ("path,label,corrected\nrow 0,dog,1\nrow 0,dog,0\n", "two different corrections of 'dog'"),
    ],
)
def test_an_invalid_file_is_refused(file, vectors, text, message):
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        correct_labels(vectors, file)
