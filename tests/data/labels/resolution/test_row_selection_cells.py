import numpy as np
import pandas as pd
import pytest

from surelabel.data import read_label_entries, read_labels
from surelabel.data.labels import csv
from surelabel.errors import DataError, InputError
from surelabel.records import LabelledImages, RowSelection

HEADER = "path,chosen_by,inclusion_probability,dog\n"


def read(folder, text):
    path = folder / "labels.csv"
    path.write_text(text)
    return read_label_entries(path)


def test_the_columns_state_how_rows_were_chosen_and_are_no_labels(tmp_path):
    labelled = read(tmp_path, f"{HEADER}a.jpg,Random,0.25,1\nb.jpg,expected_gain,,\nc.jpg,,,0\n")
    assert labelled.names == ["dog"]
    assert labelled.known[:, 0].tolist() == [True, False, True]
    selection = labelled.row_selection
    assert selection.chosen_by == ["random", "expected_gain", ""]
    assert selection.inclusion_probability[0] == 0.25
    assert "chosen_by" in labelled.reading


def test_the_columns_of_a_spreadsheet_in_german_and_of_pandas_are_read(tmp_path):
    semicolons = read(tmp_path, f"{HEADER}a.jpg,random,X,1\n".replace(",", ";").replace("X", "0,5"))
    frame = pd.DataFrame(
        {
            "path": ["a.jpg", "b.jpg"],
            "chosen_by": ["random", None],
            "inclusion_probability": [0.5, np.nan],
            "dog": [1, 0],
        }
    )
    for labelled in (semicolons, read_label_entries(frame)):
        assert labelled.row_selection.inclusion_probability[0] == 0.5


def test_a_table_without_the_columns_has_no_selection(tmp_path):
    assert read(tmp_path, "path,dog\na.jpg,1\n").row_selection is None


def test_ignored_columns_state_nothing(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(f"{HEADER}a.jpg,random,0.25,1\n")
    labelled = read_label_entries(path, ignore=["chosen_by", "inclusion_probability"])
    assert labelled.row_selection is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("path,chosen_by,dog\na.jpg,random,1\n", "inclusion_probability 0 times"),
        (f"{HEADER}a.jpg,1,,1\n", "chosen_by must be random.*got '1'.*rename the column"),
        (f"{HEADER}a.jpg,True,,1\n", "chosen_by must be random"),
        (f"{HEADER}a.jpg,random,,1\n", r"must be in \(0, 1\]; got ''"),
        (f"{HEADER}a.jpg,random,1.5,1\n", r"must be in \(0, 1\]; got '1.5'"),
        (f"{HEADER}a.jpg,random,often,1\n", r"must be in \(0, 1\]; got 'often'"),
        (f"{HEADER}a.jpg,,0.5,1\n", "must be empty, because chosen_by is not random"),
        (
            f"{HEADER}a.jpg,random,0.5,1\na.jpg,random,0.6,1\n",
            "line 3: rows of the same image must have the same",
        ),
    ],
)
def test_invalid_cells_are_refused_with_their_place(tmp_path, text, complaint):
    with pytest.raises(DataError, match=complaint):
        read(tmp_path, text)


def test_repeated_rows_of_an_image_are_merged(tmp_path):
    labelled = read(tmp_path, f"{HEADER}a.jpg,,,1\na.jpg,random,0.5,\nb.jpg,expected_gain,,0\n")
    assert labelled.row_selection.chosen_by == ["random", "expected_gain"]


def test_writing_and_reading_a_table_keeps_every_bit(tmp_path):
    paths = [str(tmp_path / f"{name}.jpg") for name in "abc"]
    for path in paths:
        (tmp_path / path).write_bytes(b"")
    probability = [1 / 3, np.nan, np.nan]
    selection = RowSelection(["random", "expected_gain", ""], probability)
    labelled = LabelledImages(paths, ["dog"], [[1], [np.nan], [0]], row_selection=selection)
    csv.write(labelled, tmp_path / "labels.csv")
    again = read_labels(tmp_path / "labels.csv")
    assert again.row_selection.chosen_by == selection.chosen_by
    assert np.array_equal(again.row_selection.inclusion_probability, probability, equal_nan=True)
    assert np.array_equal(again.known, labelled.known)


def test_a_label_of_the_same_name_is_not_written(tmp_path):
    labelled = LabelledImages(["a"], ["chosen_by"], [[1]])
    with pytest.raises(InputError, match="must not be 'chosen_by'"):
        csv.write(labelled, tmp_path / "labels.csv")
