import numpy as np
import pytest

from surelabel.data import (
    FailedImages,
    describe_prediction_run,
    open_prediction_folder,
    read_failed_images,
    write_failed_images,
    write_prediction_part,
)
from surelabel.errors import DataError, InputError
from surelabel.records import Predictions, SkippedImage

ROWS = np.array([0, 1])


@pytest.fixture
def run():
    return describe_prediction_run("0123abcd", ["lion"], None, ["a.jpg", "b.jpg"], {})


def predictions(**changes):
    arguments = {
        "paths": ["a.jpg", "b.jpg"],
        "names": ["lion"],
        "scores": np.array([[1.0], [2.0]], np.float32),
        "model": "0123abcd",
    }
    return Predictions(**arguments | changes)


@pytest.mark.parametrize(
    "rows", [[0], [0, 0], [0, 2], [-1, 0], [0.0, 1.0], [[0, 1]]], ids=lambda rows: str(rows)
)
def test_rows_must_be_those_of_the_run(tmp_path, run, rows):
    with pytest.raises(InputError, match=r"rows must be 2 distinct integers \(int64\) in \[0, 2"):
        write_prediction_part(tmp_path, run, "a", predictions(), np.array(rows))


@pytest.mark.parametrize("changes", [{"model": "ffff"}, {"names": ["bear"]}])
def test_predictions_of_another_recognizer_are_refused(tmp_path, run, changes):
    with pytest.raises(
        InputError, match="recognizer, labels and calibration of a part must be the same"
    ):
        write_prediction_part(tmp_path, run, "a", predictions(**changes), ROWS)


def test_a_value_that_is_not_finite_is_refused(tmp_path, run):
    scores = np.array([[1.0], [np.nan]], np.float32)
    with pytest.raises(InputError, match="Every score must be finite"):
        write_prediction_part(tmp_path, run, "a", predictions(scores=scores), ROWS)


@pytest.mark.parametrize("name", ["", "../a", "a/b", "a b", "."])
def test_a_name_of_a_part_is_no_path(tmp_path, run, name):
    with pytest.raises(InputError, match="The name of a part must consist of letters"):
        write_prediction_part(tmp_path, run, name, predictions(), ROWS)


def test_a_part_that_cannot_be_written_leaves_no_file(tmp_path, run):
    (tmp_path / "out").write_text("a file in place of the folder")
    with pytest.raises(DataError, match=r"part-a.parquet cannot be written"):
        write_prediction_part(tmp_path / "out", run, "a", predictions(), ROWS)


def test_a_folder_without_failed_images_can_have_an_empty_file(tmp_path, run):
    open_prediction_folder(tmp_path, run)
    file = write_failed_images(tmp_path, run, FailedImages(np.empty(0, np.int64), []))
    assert file.name == "failed.parquet"
    assert len(read_failed_images(tmp_path)) == 0


def test_a_path_that_is_not_utf8_is_escaped(tmp_path, run):
    open_prediction_folder(tmp_path, run)
    image = SkippedImage("caf\udce9.jpg", "empty file")
    write_failed_images(tmp_path, run, FailedImages(np.array([1]), [image]), name="a")
    assert read_failed_images(tmp_path).images[0].path == "caf\\udce9.jpg"
