import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surelabel import mapped_arrays
from surelabel.data import (
    describe_prediction_run,
    open_prediction_folder,
    open_predictions,
    prediction_writing,
    read_predictions,
    write_prediction_blocks,
    write_prediction_part,
    write_predictions,
)
from surelabel.errors import DataError, InputError
from surelabel.records import Predictions, SkippedImage

NAMES = ["dog", "cat", "lion"]


def predictions(n_images=10, names=NAMES, seed=0):
    values = np.random.default_rng(seed).normal(size=(n_images, len(names))).astype(np.float32)
    return Predictions(
        paths=[f"images/{row}.jpg" for row in range(n_images)],
        names=names,
        scores=values,
        logits=2 * values,
        calibration="platt on 500 images",
        model="0123abcd",
        skipped=(SkippedImage("cut.jpg", "truncated file"),),
        shown=values > 0,
        thresholds=np.full(len(names), 0.5),
    )


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a file of three row groups: of 4, 4 and 2 images."""
    monkeypatch.setattr(prediction_writing, "ROWS_PER_GROUP", 4)
    whole, path = predictions(), tmp_path / "tags.parquet"
    blocks = [whole_rows(whole, slice(start, start + 4)) for start in (0, 4, 8)]
    write_prediction_blocks(iter(blocks), path, skipped=whole.skipped)
    assert pq.ParquetFile(path).num_row_groups == 3
    return path


def whole_rows(given, rows):
    arrays = {name: getattr(given, name)[rows] for name in ("paths", "scores", "logits", "shown")}
    return replace(given, **arrays)


def assert_equal(found, wanted):
    assert (list(found.paths), list(found.names)) == (list(wanted.paths), list(wanted.names))
    assert (found.calibration, found.model) == (wanted.calibration, wanted.model)
    for name in ("scores", "logits", "shown", "thresholds"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_opened_predictions_state_what_the_file_contains(file):
    stored, wanted = open_predictions(file), predictions()
    assert len(stored) == 10
    assert stored.paths == wanted.paths
    assert list(stored.names) == NAMES
    assert (stored.calibration, stored.model) == (wanted.calibration, wanted.model)
    assert tuple(stored.skipped) == wanted.skipped


def test_values_of_some_labels_are_read_in_the_order_of_the_labels(file):
    stored, wanted = open_predictions(file), predictions()
    np.testing.assert_array_equal(stored.scores(["lion", "dog"]), wanted.scores[:, [2, 0]])
    np.testing.assert_array_equal(stored.logits(), wanted.logits)
    assert stored.scores([]).shape == (10, 0)


def test_blocks_are_the_row_groups_and_together_the_predictions(file):
    blocks = list(open_predictions(file).blocks())
    assert [len(block) for block in blocks] == [4, 4, 2]
    wanted = predictions()
    for start, block in zip((0, 4, 8), blocks, strict=True):
        assert_equal(block, whole_rows(wanted, slice(start, start + 4)))
        assert block.skipped == ()


@pytest.mark.parametrize("min_bytes", [1, 2**22])
def test_all_predictions_are_read_as_they_were_written(file, monkeypatch, min_bytes):
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", min_bytes)
    for found in (open_predictions(file).read(), read_predictions(file)):
        assert_equal(found, predictions())
        assert tuple(found.skipped) == predictions().skipped
        assert isinstance(found.scores.base, np.memmap) == (min_bytes == 1)


def test_a_file_without_images_is_opened_and_read(tmp_path):
    empty = whole_rows(predictions(), slice(0, 0))
    write_predictions(empty, tmp_path / "empty.parquet")
    stored = open_predictions(tmp_path / "empty.parquet")
    assert (len(stored), stored.paths, stored.scores(["cat"]).shape) == (0, [], (0, 1))
    assert_equal(stored.read(), empty)


def test_a_folder_is_opened_in_the_order_of_its_images(tmp_path):
    wanted = replace(predictions(), skipped=())
    run = describe_prediction_run(wanted.model, NAMES, wanted.calibration, wanted.paths, options={})
    open_prediction_folder(tmp_path / "out", run)
    for name, rows in (("b", np.arange(1, 10, 2)), ("a", np.arange(0, 10, 2))):
        part = whole_rows(wanted, slice(rows[0], None, 2))
        write_prediction_part(tmp_path / "out", run, name, part, rows)
    stored = open_predictions(tmp_path / "out")
    assert stored.paths == wanted.paths
    np.testing.assert_array_equal(stored.logits(["lion"]), wanted.logits[:, [2]])
    assert_equal(stored.read(), wanted)


def test_the_memory_of_blocks_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(prediction_writing, "ROWS_PER_GROUP", 100)
    peaks = []
    for n_blocks in (4, 40):
        path = tmp_path / f"{n_blocks}.parquet"
        block = predictions(100, [f"label {i}" for i in range(20)])
        write_prediction_blocks(iter([block] * n_blocks), path, skipped=())
        tracemalloc.start()
        n_images = sum(len(block) for block in open_predictions(path).blocks())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert n_images == 100 * n_blocks
    assert peaks[1] <= 1.1 * peaks[0] + 50_000


def test_a_label_that_is_not_there_is_named_with_a_similar_one(file):
    with pytest.raises(InputError, match=r'Label "dgo" is not in .*Did you mean "dog"\?'):
        open_predictions(file).scores(["dgo"])


def test_predictions_without_log_odds_have_none_to_read(tmp_path):
    scores = replace(predictions(), logits=None, calibration=None, shown=None, thresholds=None)
    write_predictions(scores, tmp_path / "tags.parquet")
    stored = open_predictions(tmp_path / "tags.parquet")
    with pytest.raises(DataError, match=r"logit:dog"):
        stored.logits(["dog"])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ""])
def test_other_files_cannot_be_opened_without_reading_them(tmp_path, suffix):
    with pytest.raises(InputError, match=r"needs a \.parquet file or a folder of predictions"):
        open_predictions(tmp_path / f"tags{suffix}")


def test_a_damaged_file_is_named(file):
    content = bytearray(file.read_bytes())
    stored = open_predictions(file)
    content[200:260] = bytes(60)
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"tags\.parquet must contain predictions"):
        stored.read()
    file.write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"tags\.parquet must contain predictions"):
        open_predictions(file)


def test_a_parquet_file_of_another_program_is_refused(tmp_path):
    pq.write_table(pa.table({"path": ["a.jpg"]}), tmp_path / "other.parquet")
    with pytest.raises(DataError, match=r"without the metadata of surelabel"):
        open_predictions(tmp_path / "other.parquet")
