import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from surelabel.data.prediction_writing import write_prediction_blocks, write_predictions
from surelabel.data.predictions import read_predictions
from surelabel.errors import InputError
from surelabel.records import Predictions, SkippedImage

NAMES = ["lion", "rocket"]


def block(first, count, *, skipped=()):
    values = np.random.default_rng(first).normal(size=(count, 2)).astype(np.float32)
    return Predictions(
        [f"{row}.jpg" for row in range(first, first + count)],
        NAMES,
        values,
        logits=values,
        calibration="platt",
        model="0123abcd",
        skipped=skipped,
    )


BLOCKS = [block(0, 3), block(3, 0), block(3, 2)]
SKIPPED = [SkippedImage("cut.jpg", "truncated file")]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_blocks_are_written_like_the_joined_predictions(tmp_path, suffix):
    joined = Predictions(
        [path for part in BLOCKS for path in part.paths],
        NAMES,
        np.concatenate([part.scores for part in BLOCKS]),
        logits=np.concatenate([part.logits for part in BLOCKS]),
        calibration="platt",
        model="0123abcd",
        skipped=SKIPPED,
    )
    write_predictions(joined, tmp_path / f"joined.{suffix}")
    write_prediction_blocks(iter(BLOCKS), tmp_path / f"blocks.{suffix}", skipped=SKIPPED)
    found = read_predictions(tmp_path / f"blocks.{suffix}")
    expected = read_predictions(tmp_path / f"joined.{suffix}")
    assert (found.paths, list(found.skipped)) == (expected.paths, SKIPPED)
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.logits, expected.logits)
    if suffix != "parquet":
        assert (tmp_path / f"blocks.{suffix}").read_bytes() == (
            tmp_path / f"joined.{suffix}"
        ).read_bytes()


def test_small_blocks_share_a_row_group_and_large_blocks_do_not(tmp_path, monkeypatch):
    monkeypatch.setattr("surelabel.data.prediction_writing.ROWS_PER_GROUP", 4)
    sizes = [3, 1, 1, 5, 2]
    starts = np.cumsum([0, *sizes])
    blocks = [block(int(start), size) for start, size in zip(starts, sizes, strict=False)]
    write_prediction_blocks(blocks, tmp_path / "tags.parquet", skipped=())
    file = pq.ParquetFile(tmp_path / "tags.parquet")
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert groups == [4, 6, 2]
    assert json.loads(file.schema_arrow.metadata[b"surelabel"])["names"] == NAMES
    assert read_predictions(tmp_path / "tags.parquet").paths == [f"{row}.jpg" for row in range(12)]


def test_a_value_that_is_not_finite_leaves_the_existing_file(tmp_path):
    write_predictions(BLOCKS[0], tmp_path / "tags.csv")
    before = (tmp_path / "tags.csv").read_bytes()
    bad = block(0, 2)
    bad.scores[1, 0] = np.nan
    with pytest.raises(InputError, match=r"Every score must be finite; got nan for 'lion' in 1"):
        write_prediction_blocks([BLOCKS[0], bad], tmp_path / "tags.csv", skipped=())
    assert (tmp_path / "tags.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["tags.csv"]


def test_spreadsheet_safe_texts_are_those_of_all_blocks_and_skipped_images(tmp_path):
    first = Predictions(["=1.jpg"], NAMES, np.zeros((1, 2), np.float32))
    second = Predictions(["+2.jpg"], NAMES, np.zeros((1, 2), np.float32))
    skipped = [SkippedImage("@3.jpg", "-reason")]
    path = tmp_path / "tags.csv"
    write_prediction_blocks([first, second], path, skipped=skipped, spreadsheet_safe=True)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["path"] for row in rows] == ["'=1.jpg", "'+2.jpg", "'@3.jpg"]
    assert rows[2]["skipped"] == "'-reason"
