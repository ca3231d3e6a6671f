import json
import re
import threading

import pytest

from surelabel.data import (
    check_prediction_folder,
    describe_prediction_run,
    is_prediction_folder,
    open_prediction_folder,
    read_prediction_run,
)
from surelabel.errors import DataError

OPTIONS = {"shards": 3, "block_size": 1, "threshold": (0.5, 0.25)}
PATHS = ["a.jpg", "b.jpg", "caf\udce9.jpg"]


def run_of(**changes):
    arguments = {
        "recognizer": "0123abcd",
        "labels": ["lion", "rocket"],
        "calibration": "platt",
        "images": PATHS,
        "options": OPTIONS,
    }
    return describe_prediction_run(**arguments | changes)


def test_a_new_folder_contains_the_description_of_its_run(tmp_path):
    folder = tmp_path / "new" / "out"
    assert not is_prediction_folder(folder)
    open_prediction_folder(folder, run_of())
    open_prediction_folder(folder, run_of())
    assert is_prediction_folder(folder)
    assert read_prediction_run(folder) == run_of()
    assert sorted(path.name for path in folder.iterdir()) == ["run.json"]


@pytest.mark.parametrize(
    ("changes", "differences"),
    [
        ({"recognizer": "ffff"}, "another recognizer"),
        ({"labels": ["lion"], "recognizer": "ffff"}, "another recognizer and other labels"),
        ({"images": PATHS[::-1]}, "other images or another order of images"),
        ({"images": PATHS[:2]}, "3 images (not 2)"),
        ({"calibration": None}, "another calibration"),
        ({"options": OPTIONS | {"shards": 4, "block_size": 2}}, "number of shards 3 (not 4)"),
        ({"options": OPTIONS | {"block_size": 2}}, "block size 1 (not 2)"),
        ({"options": OPTIONS | {"threshold": None}}, "--threshold [0.5, 0.25] (not none)"),
        ({"options": OPTIONS | {"threshold": [0.5] * 20}}, "another --threshold"),
        ({"options": OPTIONS | {"max_image_memory": 9}}, "--max-image-memory none (not 9)"),
        ({"options": {"has_vectors": False}}, "--shard (not --cluster)"),
    ],
)
def test_another_run_is_refused_and_its_differences_are_named(tmp_path, changes, differences):
    open_prediction_folder(tmp_path, run_of())
    assert run_of(**changes).digest != run_of().digest
    message = re.escape(f"predictions of the same run; got a run with {differences}. Give the same")
    for check in (open_prediction_folder, check_prediction_folder):
        with pytest.raises(DataError, match=message):
            check(tmp_path, run_of(**changes))


def test_a_folder_of_a_cluster_is_refused_for_shards(tmp_path):
    open_prediction_folder(tmp_path, run_of(options={"has_vectors": True}))
    with pytest.raises(DataError, match=r"run with --cluster \(not --shard\)\. Give"):
        open_prediction_folder(tmp_path, run_of())


def test_a_run_of_another_version_is_refused(tmp_path):
    open_prediction_folder(tmp_path, run_of())
    stored = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(stored | {"version": "0.0.1"}))
    with pytest.raises(DataError, match=r"a run with surelabel 0\.0\.1 \(not [0-9.a-z]+\)\. Give"):
        open_prediction_folder(tmp_path, run_of())


def test_a_check_does_not_create_the_folder(tmp_path):
    check_prediction_folder(tmp_path / "new" / "out", run_of())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["index.json", "part-000.parquet"])
def test_a_folder_with_other_files_is_refused(tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(DataError, match=f"or a folder of predictions; got a folder with {name}"):
        open_prediction_folder(tmp_path, run_of())


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("text")
    with pytest.raises(DataError, match=r"out cannot be written: Not a directory\. Give another"):
        open_prediction_folder(tmp_path / "out", run_of())


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        '{"format": "surelabel prediction folder 2"}',
        '{"format": "surelabel prediction folder 1", "labels": 3}',
    ],
)
def test_a_damaged_description_is_named(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(DataError, match=r"run\.json") as caught:
        read_prediction_run(tmp_path)
    assert "\n" not in str(caught.value)


def test_processes_that_open_a_new_folder_together_agree(tmp_path):
    errors = []

    def open_folder(number):
        try:
            open_prediction_folder(tmp_path / "out", run_of(recognizer=f"{number % 2}"))
        except DataError as error:
            errors.append((number % 2, "another recognizer" in str(error)))

    threads = [threading.Thread(target=open_folder, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = int(read_prediction_run(tmp_path / "out").recognizer)
    assert errors == [(1 - winner, True)] * 4
