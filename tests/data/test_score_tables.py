import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surelabel.data import (
    add_labels_to_scores,
    join_scores_and_labels,
    read_scores,
    score_table_columns,
)
from surelabel.errors import DataError, InputError
from surelabel.records import LabelledImages, LabelledScores, RowSelection

TABLE = {"filename": ["a.jpg", "b.jpg"], "dog": [-3.5, 0.25], "cat": [12.0, 1.0]}
VALUES = [[-3.5, 12.0], [0.25, 1.0]]
TEXTS = {
    "plain": "filename,dog,cat\na.jpg,-3.5,12\nb.jpg,0.25,1\n",
    "decimal comma": "filename;dog;cat\na.jpg;-3,5;12\nb.jpg;0,25;1\n",
    "tabs and row numbers": "\tfilename\tdog\tcat\n0\ta.jpg\t-3.5\t1.2e1\n1\tb.jpg\t0.25\t1\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_csv_scores_of_any_range_are_read(tmp_path, text):
    (tmp_path / "s.csv").write_text(text, encoding="utf-8")
    scores = read_scores(tmp_path / "s.csv", kind="logits")
    assert (scores.paths, scores.columns) == (["a.jpg", "b.jpg"], ["dog", "cat"])
    assert scores.features.tolist() == VALUES
    assert score_table_columns(tmp_path / "s.csv")[-2:] == ["dog", "cat"]


def test_parquet_archives_and_tables_in_memory_give_the_same_scores(tmp_path):
    pq.write_table(pa.table(TABLE), tmp_path / "s.parquet")
    np.savez(tmp_path / "s.npz", scores=VALUES, names=["dog", "cat"], paths=TABLE["filename"])
    for source in (tmp_path / "s.parquet", tmp_path / "s.npz", pa.table(TABLE)):
        scores = read_scores(source, kind="logits")
        assert (scores.paths, scores.columns) == (["a.jpg", "b.jpg"], ["dog", "cat"])
        assert scores.features.tolist() == VALUES
    assert score_table_columns(tmp_path / "s.parquet") == list(TABLE)
    assert score_table_columns(tmp_path / "s.npz") == score_table_columns("lost.csv") == []


def test_scores_and_labels_are_joined_by_image_name_without_image_files(tmp_path):
    (tmp_path / "truth.csv").write_text("image,cat\n./b.jpg,1\na.jpg,\n")
    scores = read_scores(pa.table(TABLE), kind="logits", labels=tmp_path / "truth.csv")
    assert (scores.paths, scores.names) == (["a.jpg", "b.jpg"], ["cat"])
    assert scores.targets.tolist() == [[0], [1]]
    assert scores.known.tolist() == [[False], [True]]


def test_images_without_scores_are_left_out_with_a_warning_and_without_labels_silently():
    scores = read_scores(pa.table(TABLE), kind="logits")
    labelled = LabelledImages(["c.jpg", "b.jpg"], ["dog"], [[1], [0]])
    with pytest.warns(
        UserWarning, match=r"without scores in s\.csv are left out: 1 of 2 images, such as 'c\.jpg'"
    ):
        joined = join_scores_and_labels(scores, labelled, source="s.csv")
    assert (joined.paths, joined.targets.tolist()) == (["b.jpg"], [[0]])


def test_names_that_never_match_are_explained():
    scores = read_scores(pa.table(TABLE), kind="logits")
    other = LabelledImages(["val/a.png"], ["dog"], [[1]])
    with pytest.raises(
        InputError,
        match=r"got 'a\.jpg'.*'val/a\.png'.*match without folders and suffixes for 1 image",
    ):
        join_scores_and_labels(scores, other)
    twice = LabelledImages(["a.jpg", "./a.jpg"], ["dog"], [[1], [1]])
    with pytest.raises(InputError, match=r"unique in the labels.* 1 repeated image names"):
        join_scores_and_labels(scores, twice)


@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        ("s.csv", "image,dog\na,high\n", DataError, r"s\.csv, line 2: the score of 'dog' must be"),
        ("s.csv", "image,dog\na,1\nb,\n", InputError, r"s\.csv: logits must be finite.*of 'b'"),
        ("s.csv", "image,dog\na,1\na,2\n", InputError, r"s\.csv: Each image must have one row"),
        ("s.csv", "image,dog\n", DataError, r"at least one row of scores; got none"),
        ("s.csv", "id,dog\na,1\n", DataError, r"column of image paths.*--image-column id"),
        ("s.xlsx", "PK", DataError, r"must be in a \.csv, \.tsv, \.parquet or \.npz file; got"),
        ("s.parquet", "PAR1", DataError, r"must be a Parquet file; got"),
        ("s.npz", "PK", DataError, r"an archive of scores.*paths=…"),
    ],
)
def test_files_that_are_no_scores_are_refused(tmp_path, name, text, error, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(error, match=message):
        read_scores(tmp_path / name, kind="logits")


def test_columns_without_scores_are_ignored_on_request(tmp_path):
    (tmp_path / "s.csv").write_text("id,dog,split\na,1,val\n")
    scores = read_scores(tmp_path / "s.csv", kind="logits", image_column="id", ignore=["split"])
    assert (scores.columns, scores.paths) == (["dog"], ["a"])


def test_scores_without_labels_stay_beside_those_with_labels():
    scores = LabelledScores(np.eye(3), "logits", columns=["x", "y", "z"], paths=["a", "b", "c"])
    selection = RowSelection(["random", "representative"], [0.5, np.nan])
    labelled = LabelledImages(["c", "b"], ["dog"], [[1], [np.nan]], row_selection=selection)
    found = add_labels_to_scores(scores, labelled)
    assert found.paths == ["a", "b", "c"]
    assert found.known.tolist() == [[False], [False], [True]]
    assert found.targets[2, 0] == 1
    assert found.row_selection.chosen_by == ["", "representative", "random"]
    assert found.row_selection.inclusion_probability[2] == 0.5
    plain = LabelledImages(["c"], ["dog"], [[1]])
    assert add_labels_to_scores(scores, plain).row_selection is None
