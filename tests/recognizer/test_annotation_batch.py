import json
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pytest
from PIL import Image

import surelabel as sl
from surelabel.data.labels.resolution.label_studio_urls import LOCAL_FILES
from surelabel.errors import DataError
from surelabel.recognizer.annotation_batch import AnnotationBatch
from surelabel.records import Predictions, RowSelection


@pytest.fixture
def batch(tmp_path):
    paths = [str(tmp_path / f"a dog {number}.png") for number in range(3)]
    for path in paths:
        Image.new("RGB", (8, 8)).save(path)
    selection = RowSelection(["random", "random", "representative"], [0.25, 0.25, np.nan])
    targets = [[1, 0], [np.nan, np.nan], [np.nan, np.nan]]
    table = sl.LabelledImages(paths, ["dog", "cat"], targets, row_selection=selection)
    logits = np.array([[2.0, -2.0], [0.0, 1.0]], dtype=np.float32)
    predictions = Predictions(paths[1:], ["dog", "cat"], logits, logits, "beta", "model 1")
    return AnnotationBatch(table, [1, 2], predictions, 7, 1, "image")


def test_the_table_goes_round_with_empty_cells(batch, tmp_path):
    batch.to_csv(tmp_path / "next.csv")
    lines = (tmp_path / "next.csv").read_text().replace('"', "").splitlines()
    assert lines[0] == "path,chosen_by,inclusion_probability,dog,cat"
    assert lines[1:] == [
        "a dog 0.png,random,0.25,1,0",
        "a dog 1.png,random,0.25,,",
        "a dog 2.png,representative,,,",
    ]
    again = sl.read_labels(tmp_path / "next.csv")
    assert again.known.tolist() == batch.table.known.tolist()
    assert again.row_selection.chosen_by == batch.table.row_selection.chosen_by


def test_tasks_have_a_url_the_entries_and_the_predicted_labels(batch, tmp_path):
    batch.to_label_studio(tmp_path / "tasks.json")
    first, second = json.loads((tmp_path / "tasks.json").read_text())
    path = str(tmp_path / "a dog 1.png")
    assert first["data"]["path"] == path
    assert unquote(first["data"]["image"]) == LOCAL_FILES + path[1:]
    assert (first["data"]["chosen_by"], first["data"]["inclusion_probability"]) == ("random", 0.25)
    assert second["data"]["inclusion_probability"] is None
    (prediction,) = first["predictions"]
    (result,) = prediction["result"]
    assert result["type"] == "choices"
    assert result["value"] == {"choices": ["dog"]}
    assert first["data"]["probabilities"] == {"dog": 0.8808, "cat": 0.1192}


def test_without_a_calibrated_model_tasks_have_no_predictions(batch, tmp_path):
    plain = AnnotationBatch(batch.table, batch.rows, None, 7, 0, "image")
    plain.to_label_studio(tmp_path / "tasks.json")
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert [task["predictions"] for task in tasks] == [[], []]
    assert "probabilities" not in tasks[0]["data"]


def test_the_list_has_one_path_per_line(batch, tmp_path):
    batch.to_list(tmp_path / "next.txt")
    assert (tmp_path / "next.txt").read_text().splitlines() == batch.paths
    assert sl.find_images([tmp_path / "next.txt"]) == batch.paths


@pytest.mark.parametrize("write", ["to_csv", "to_label_studio", "to_list"])
def test_an_existing_file_is_never_replaced(batch, tmp_path, write):
    (tmp_path / "next").write_text("annotations")
    with pytest.raises(DataError, match=r"must be a new file.*may contain annotations"):
        getattr(batch, write)(tmp_path / "next")
    assert (tmp_path / "next").read_text() == "annotations"


@pytest.mark.parametrize("write", ["to_csv", "to_label_studio", "to_list"])
@pytest.mark.parametrize("name", ["caf\udce9.png", "two\nlines.png"])
def test_paths_that_a_text_file_cannot_hold_are_refused(batch, tmp_path, write, name):
    images = replace(batch.table, paths=[*batch.table.paths[:2], str(tmp_path / name)])
    odd, file = replace(batch, table=images, predictions=None), tmp_path / "next"
    if name.endswith("lines.png") and write != "to_list":
        getattr(odd, write)(file)  # quoted in these formats
        return
    with pytest.raises(DataError, match=r"must be valid UTF-8.* Rename the image file"):
        getattr(odd, write)(file)
    assert not file.exists()


def test_rows_of_vectors_keep_their_names_and_rows_without_entries_are_left_out(tmp_path):
    selection = RowSelection(["random", "", ""], [0.5, np.nan, np.nan])
    table = sl.LabelledFeatures(
        np.eye(3), ["dog"], [[np.nan], [1], [np.nan]], row_selection=selection
    )
    AnnotationBatch(table, [0], None, 2, 0, "row").to_csv(tmp_path / "next.csv")
    lines = (tmp_path / "next.csv").read_text().replace('"', "").splitlines()
    assert lines[1:] == ["row 0,random,0.5,", "row 1,,,1"]


def test_the_summary_states_the_numbers_and_the_first_rows(batch):
    assert "AnnotationBatch(rows=2, random=1, pool=7)" in repr(batch)
    assert "a dog 1.png" in repr(batch)
    assert "<table" in batch._repr_html_()
    text = batch.describe()
    assert (
        "2 images of 7 without labels: 1 chosen at random, 1 by the strategy representative."
        in text
    )
    assert "The table contains 2 random rows, with inclusion probability 0.25." in text
    assert "1 image of earlier batches still has no labels" in text
    assert batch.as_dict()["random_in_table"] == 2


def test_an_image_without_a_prediction_has_a_task_without_one(batch, tmp_path):
    logits = np.array([[0.0, 1.0]], dtype=np.float32)
    only = Predictions(batch.paths[1:], ["dog", "cat"], logits, logits, "beta", "model 1")
    AnnotationBatch(batch.table, batch.rows, only, 7, 0, "image").to_label_studio(tmp_path / "t")
    first, second = json.loads((tmp_path / "t").read_text())
    assert first["predictions"] == []
    assert second["data"]["probabilities"]["dog"] == 0.5
    assert second["predictions"][0]["result"][0]["value"] == {"choices": ["dog", "cat"]}
