import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data import (
    FailedImages,
    check_prediction_folder_is_complete,
    describe_prediction_run,
    is_prediction_file,
    open_prediction_folder,
    open_predictions,
    prediction_folder_blocks,
    read_predictions,
    write_failed_images,
    write_prediction_part,
    write_predictions,
)
from surelabel.data.prediction_part_reading import read_prediction_part
from surelabel.errors import DataError, NoReadableImage
from surelabel.records import Predictions, SkippedImage

NAMES = ["lion", "rocket"]
MODEL = "0123abcd"


def random_predictions(n_images, *, seed=0, vectors=False):
    """Predictions of n images with every kind of value."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(n_images, 2)).astype(np.float32)
    return Predictions(
        paths=[f"images/{row:05}.jpg" for row in range(n_images)],
        names=NAMES,
        scores=values,
        logits=2 * values,
        calibration="platt",
        model=MODEL,
        features=random.normal(size=(n_images, 3)).astype(np.float16) if vectors else None,
        hashes=[f"{row:032x}" for row in range(n_images)],
        uncertainty=abs(values),
        uncertainty_kind="bernoulli_variance",
        shown=values > 0,
        thresholds=np.array([0.25, 0.5]),
    )


def take(predictions, rows):
    """Predictions of some images."""
    arrays = ("scores", "logits", "features", "uncertainty", "shown")
    values = {name: getattr(predictions, name) for name in arrays}
    return replace(
        predictions,
        paths=[predictions.paths[row] for row in rows],
        hashes=[predictions.hashes[row] for row in rows],
        **{name: None if array is None else array[rows] for name, array in values.items()},
    )


def run_of(predictions, **options):
    return describe_prediction_run(MODEL, NAMES, "platt", predictions.paths, options)


def write_folder(folder, predictions, parts, failed=()):
    """Write parts, given as lists of rows, and failed rows; return the run."""
    run = run_of(predictions)
    open_prediction_folder(folder, run)
    for number, rows in enumerate(parts):
        rows = np.array(rows, np.int64)
        write_prediction_part(folder, run, f"{number:03}", take(predictions, rows), rows)
    images = [SkippedImage(predictions.paths[row], f"reason {row}") for row in failed]
    write_failed_images(folder, run, FailedImages(np.array(failed, np.int64), images))
    return run


def check_equal(found, expected):
    """Check that all values of predictions are equal, bit for bit."""
    assert found.paths == expected.paths
    for name in ("names", "calibration", "model", "skipped", "uncertainty_kind"):
        assert getattr(found, name) == getattr(expected, name)
    for name in ("scores", "logits", "uncertainty", "shown", "thresholds"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), strict=True)


@st.composite
def divisions(draw):
    """Draw a number of images, the part of each image (or None if it failed), and an order."""
    n_images = draw(st.integers(1, 40))
    n_parts = draw(st.integers(1, 5))
    part = st.one_of(st.none(), st.integers(0, n_parts - 1))
    part_of_row = draw(st.lists(part, min_size=n_images, max_size=n_images))
    part_of_row[draw(st.integers(0, n_images - 1))] = 0  # one image is predicted
    return part_of_row, draw(st.permutations(range(n_parts))), draw(st.integers(1, 50))


@settings(max_examples=15)
@given(divisions(), st.booleans())
def test_any_division_into_parts_reads_as_the_predictions_of_one_run(
    tmp_path_factory, division, vectors
):
    part_of_row, order, block_size = division
    folder = tmp_path_factory.mktemp("parts")
    predictions = random_predictions(len(part_of_row), vectors=vectors)
    parts = [[row for row, p in enumerate(part_of_row) if p == part] for part in order]
    shuffled = [rows[::-1] for rows in parts if rows]
    failed = [row for row, part in enumerate(part_of_row) if part is None]
    write_folder(folder / "out", predictions, shuffled, failed)
    kept = [row for row, part in enumerate(part_of_row) if part is not None]
    skipped = tuple(SkippedImage(predictions.paths[row], f"reason {row}") for row in failed)
    one_run = replace(take(predictions, kept), skipped=skipped)
    write_predictions(one_run, folder / "one.parquet")
    found = read_predictions(folder / "out")
    check_equal(found, read_predictions(folder / "one.parquet"))
    assert found.hashes == one_run.hashes
    blocks = list(prediction_folder_blocks(folder / "out", block_size=block_size))
    assert [len(block) for block in blocks[:-1]] == [block_size] * (len(blocks) - 1)
    assert [path for block in blocks for path in block.paths] == one_run.paths
    for name in ("scores", "logits", "uncertainty", "shown"):
        joined = np.concatenate([getattr(block, name) for block in blocks])
        np.testing.assert_array_equal(joined, getattr(one_run, name), strict=True)
    if vectors:
        np.testing.assert_array_equal(found.features, one_run.features, strict=True)
    shutil.rmtree(folder)


def test_images_of_more_parts_than_are_in_memory_are_read_in_order(tmp_path, monkeypatch):
    from surelabel.data import prediction_folder_reading

    monkeypatch.setattr(prediction_folder_reading, "MAX_OPEN_PARTS", 2)
    predictions = random_predictions(60)
    write_folder(tmp_path, predictions, [range(part, 60, 6) for part in range(6)])
    blocks = list(prediction_folder_blocks(tmp_path, block_size=7))
    np.testing.assert_array_equal(np.concatenate([b.logits for b in blocks]), predictions.logits)


def test_parts_of_several_folders_can_be_copied_into_one(tmp_path):
    predictions = random_predictions(10)
    run = write_folder(tmp_path / "a", predictions, [range(5)])
    open_prediction_folder(tmp_path / "b", run)
    rows = np.arange(5, 10)
    write_prediction_part(tmp_path / "b", run, "b", take(predictions, rows), rows)
    shutil.copytree(tmp_path / "b", tmp_path / "a", dirs_exist_ok=True)
    np.testing.assert_array_equal(read_predictions(tmp_path / "a").scores, predictions.scores)


def test_missing_images_are_counted(tmp_path):
    predictions = random_predictions(10)
    write_folder(tmp_path, predictions, [range(3), range(5, 9)], failed=[4])
    with pytest.raises(
        DataError, match=r"all 10 images; 2 missing, and the first missing row is 3\. Run"
    ):
        read_predictions(tmp_path)
    (tmp_path / "part-000.parquet").unlink()
    with pytest.raises(DataError, match="5 missing, and the first missing row is 0"):
        check_prediction_folder_is_complete(tmp_path)


def test_missing_images_at_the_end_are_counted(tmp_path):
    write_folder(tmp_path, random_predictions(10), [range(8)])
    with pytest.raises(DataError, match="2 missing, and the first missing row is 8"):
        read_predictions(tmp_path)


def test_an_image_that_failed_before_it_was_predicted_is_not_skipped(tmp_path):
    write_folder(tmp_path, random_predictions(4), [range(4)], failed=[1])
    found = read_predictions(tmp_path)
    assert len(found) == 4
    assert not found.skipped


def test_a_folder_in_which_all_images_failed_is_an_error(tmp_path):
    write_folder(tmp_path, random_predictions(3), [], failed=[0, 1, 2])
    with pytest.raises(
        NoReadableImage, match=r"failed for all 3 images, first images/00000.jpg: reason"
    ):
        read_predictions(tmp_path)


@pytest.mark.parametrize("vectors", [False, True])
def test_parts_without_images_have_the_widths_and_kinds_of_the_others(tmp_path, vectors):
    predictions = random_predictions(4, vectors=vectors)
    folder = tmp_path / "out"
    write_folder(folder, predictions, [[], [1, 0], [], [2]], failed=[3])
    expected = replace(
        take(predictions, range(3)), skipped=(SkippedImage("images/00003.jpg", "reason 3"),)
    )
    _, empty = read_prediction_part(folder / "part-000.parquet", run_of(predictions))
    none = take(predictions, [])
    check_equal(empty, none)
    for found in (read_predictions(folder), open_predictions(folder).read()):
        check_equal(found, expected)
        assert found.hashes == expected.hashes
        np.testing.assert_array_equal(found.features, expected.features)
    assert list(empty.hashes) == []
    assert (empty.features is None) == (not vectors)
    if vectors:
        np.testing.assert_array_equal(empty.features, none.features, strict=True)


@pytest.mark.parametrize("parts", [[], [[]]])
@pytest.mark.parametrize("n_images", [0, 2])
def test_a_folder_without_predictions_is_one_error_however_it_is_read(tmp_path, parts, n_images):
    folder = tmp_path / "out"
    write_folder(folder, random_predictions(n_images, vectors=True), parts, failed=range(n_images))
    for read in (read_predictions, open_predictions):
        with pytest.raises(
            NoReadableImage, match=f"must be readable; prediction failed for all {n_images} image"
        ):
            read(folder)
    assert list(prediction_folder_blocks(folder)) == []


def test_a_part_with_other_columns_is_damaged(tmp_path):
    predictions = random_predictions(4)
    run = write_folder(tmp_path, predictions, [range(2)])
    others = replace(take(predictions, [2, 3]), uncertainty=None, uncertainty_kind=None)
    write_prediction_part(tmp_path, run, "other", others, np.array([2, 3]))
    with pytest.raises(DataError, match=r"part-other.parquet is damaged: its columns differ"):
        read_predictions(tmp_path)


def test_a_folder_of_predictions_is_accepted_in_place_of_a_file(tmp_path):
    write_folder(tmp_path, random_predictions(2), [range(2)])
    assert is_prediction_file(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"format": "other"}))
    assert not is_prediction_file(tmp_path)
    assert not is_prediction_file(Path("/nowhere"))
