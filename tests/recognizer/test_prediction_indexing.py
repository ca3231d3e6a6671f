from dataclasses import replace

import numpy as np
import pytest

from surelabel.data import (
    FailedImages,
    describe_prediction_run,
    open_prediction_folder,
    prediction_folder_reading,
    write_failed_images,
    write_prediction_part,
)
from surelabel.errors import DataError, InputError, NotFitted
from surelabel.recognizer import index_prediction_folder
from surelabel.records import Predictions, SkippedImage
from surelabel.retrieval import Index, IndexRecognizer

NAMES, MODEL = ["lion", "rocket"], "0123abcd"


def predictions_of(folder, n_images, *, calibration="platt", vectors=False):
    random = np.random.default_rng(n_images)
    values = random.normal(size=(n_images, 2)).astype(np.float32)
    features = random.normal(size=(n_images, 3)).astype(np.float16) if vectors else None
    paths = [str(folder / "images" / f"{row:03}.jpg") for row in range(n_images)]
    logits = values if calibration else None
    return Predictions(paths, NAMES, values, logits, calibration, MODEL, features)


def take(predictions, rows):
    parts = {name: getattr(predictions, name) for name in ("scores", "logits", "features")}
    arrays = {name: array[rows] for name, array in parts.items() if array is not None}
    return replace(predictions, paths=[predictions.paths[row] for row in rows], **arrays)


def write(folder, predictions, parts, failed=()):
    run = describe_prediction_run(MODEL, NAMES, predictions.calibration, predictions.paths, {})
    open_prediction_folder(folder, run)
    for number, rows in enumerate(parts):
        rows = np.array(rows)
        write_prediction_part(folder, run, f"{number}", take(predictions, rows), rows)
    images = [SkippedImage(predictions.paths[row], "empty file") for row in failed]
    write_failed_images(folder, run, FailedImages(np.array(failed, np.int64), images))
    return folder


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Blocks of three images, so that an index has several shards."""
    blocks = prediction_folder_reading.prediction_folder_blocks
    monkeypatch.setitem(blocks.__kwdefaults__, "block_size", 3)


def test_an_index_of_parts_equals_an_index_of_all_predictions(tmp_path):
    predictions = predictions_of(tmp_path, 10, vectors=True)
    out = write(tmp_path / "out", predictions, [[7, 8, 9, 0], [1, 5, 6], [2, 3]], failed=[4])
    recorded, steps = IndexRecognizer("tiny-vit", tuple(NAMES)), []
    update = index_prediction_folder(
        tmp_path / "index", out, recognizer=recorded, progress=lambda *step: steps.append(step)
    )
    kept = [0, 1, 2, 3, 5, 6, 7, 8, 9]
    skipped = (SkippedImage(predictions.paths[4], "empty file"),)
    Index.create(tmp_path / "one", replace(take(predictions, kept), skipped=skipped))
    found, expected = Index.open(tmp_path / "index"), Index.open(tmp_path / "one")
    assert (update.added, update.changed, update.removed, len(update.skipped)) == (9, 0, 0, 1)
    assert (found.paths, found.root) == (expected.paths, expected.root)
    assert found.search("lion & !rocket") == expected.search("lion & !rocket")
    np.testing.assert_array_equal(
        np.concatenate(list(found.image_vectors())), predictions.features[kept]
    )
    assert found.recognizer == recorded
    assert found.status(predictions.paths) == expected.status(predictions.paths)
    assert steps == [(3, 9), (6, 9), (9, 9)]


def test_predictions_are_added_to_an_index(tmp_path):
    predictions = predictions_of(tmp_path, 8)
    Index.create(tmp_path / "index", take(predictions, [0, 1, 2, 3]))
    other = predictions_of(tmp_path, 8)
    out = write(tmp_path / "out", replace(other, logits=-other.logits), [range(1, 8)], failed=[0])
    update = index_prediction_folder(tmp_path / "index", out)
    assert (update.added, update.changed, update.removed) == (4, 3, 1)
    assert sorted(Index.open(tmp_path / "index").paths) == other.paths[1:]


def test_the_same_image_in_two_parts_is_refused_before_an_index_is_written(tmp_path):
    out = write(tmp_path / "out", predictions_of(tmp_path, 4), [[0, 1, 2], [2, 3]])
    with pytest.raises(DataError, match=r"row 2 in part-0.parquet and part-1.parquet\. Delete one"):
        index_prediction_folder(tmp_path / "index", out)
    assert not (tmp_path / "index").exists()


def test_incomplete_predictions_are_refused_before_an_index_is_written(tmp_path):
    out = write(tmp_path / "out", predictions_of(tmp_path, 4), [[0, 1, 2]])
    with pytest.raises(DataError, match="1 missing, and the first missing row is 3"):
        index_prediction_folder(tmp_path / "index", out)
    assert not (tmp_path / "index").exists()


def test_uncalibrated_predictions_are_refused(tmp_path):
    out = write(tmp_path / "out", predictions_of(tmp_path, 2, calibration=None), [[0, 1]])
    with pytest.raises(NotFitted, match="not calibrated"):
        index_prediction_folder(tmp_path / "index", out)


def test_an_index_of_another_recognizer_is_refused(tmp_path):
    predictions = predictions_of(tmp_path, 4)
    Index.create(tmp_path / "index", replace(predictions, model="ffff"))
    out = write(tmp_path / "out", predictions, [range(4)])
    with pytest.raises(InputError, match="model fingerprint of the index, 'ffff'; got '0123ab"):
        index_prediction_folder(tmp_path / "index", out)
