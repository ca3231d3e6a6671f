import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.data import (
    FailedImages,
    ImageCounts,
    ImageShard,
    blocks_of_image_shard,
    describe_prediction_run,
    image_shard_options,
    open_prediction_folder,
    parse_image_shard,
    prediction_folder_status,
    rows_of_image_block,
    write_failed_images,
    write_prediction_part,
)
from surelabel.errors import DataError, InputError
from surelabel.records import Predictions, SkippedImage


def run_of(n_images, options):
    paths = [f"{row}.jpg" for row in range(n_images)]
    return describe_prediction_run("0123abcd", ["lion"], None, paths, options)


def test_a_shard_is_two_numbers():
    assert parse_image_shard("2/3") == ImageShard(2, 3)
    assert str(parse_image_shard("1/1")) == "1/1"


@pytest.mark.parametrize(
    "text", ["3/2", "0/2", "a/b", "", "1", "1/0", "-1/2", "1/2/3", " 1/2", "1.0/2", "१/२", "1/2\n"]
)
def test_other_shards_are_refused(text):
    with pytest.raises(InputError, match=r"shard must be i/n with 1 <= i <= n; got "):
        parse_image_shard(text)


@given(st.integers(1, 5000), st.integers(1, 40), st.sampled_from([4096, 1024, 256, 10]))
def test_every_image_is_in_one_shard(n_images, count, max_block_size):
    options = image_shard_options(n_images, count, max_block_size=max_block_size)
    run = run_of(1, options)
    run = type(run)(**{**run.__dict__, "n_images": n_images})
    rows = [
        rows_of_image_block(run, block)
        for number in range(1, count + 1)
        for block in blocks_of_image_shard(run, ImageShard(number, count))
    ]
    assert sorted(np.concatenate(rows).tolist()) == list(range(n_images))
    assert max(map(len, rows)) <= max_block_size


@pytest.mark.parametrize(
    ("n_images", "count", "block_size"),
    [(0, 3, 1), (1, 3, 1), (80, 3, 27), (1000, 3, 64), (10_000, 4, 320), (1_000_000, 8, 4096)],
)
def test_blocks_are_a_multiple_of_the_batch_if_there_are_enough_images(n_images, count, block_size):
    options = image_shard_options(n_images, count, max_block_size=4096)
    assert options == {"shards": count, "block_size": block_size}


def test_status_counts_images_by_shard(tmp_path):
    run = run_of(10, {"shards": 2, "block_size": 2})
    open_prediction_folder(tmp_path, run)
    values = np.zeros((3, 1), np.float32)
    predictions = Predictions(["0.jpg", "2.jpg", "5.jpg"], ["lion"], values, model="0123abcd")
    write_prediction_part(tmp_path, run, "a", predictions, np.array([0, 2, 5]))
    images = [SkippedImage(f"{row}.jpg", "empty file") for row in (0, 1, 3)]
    write_failed_images(tmp_path, run, FailedImages(np.array([0, 1, 3]), images))
    status = prediction_folder_status(tmp_path)
    assert status.total == ImageCounts(images=10, predicted=3, failed=2, missing=5)
    assert status.shards == (ImageCounts(6, 2, 1, 3), ImageCounts(4, 1, 1, 2))


def test_a_run_without_shards_has_total_counts_only(tmp_path):
    open_prediction_folder(tmp_path, run_of(3, {}))
    status = prediction_folder_status(tmp_path)
    assert (status.total, status.shards) == (ImageCounts(3, 0, 0, 3), ())


@pytest.mark.parametrize("value", [0, "2", None, True])
def test_a_damaged_option_is_named(tmp_path, value):
    open_prediction_folder(tmp_path, run_of(3, {"shards": 2, "block_size": 2}))
    stored = json.loads((tmp_path / "run.json").read_text())
    stored["options"]["shards"] = value
    (tmp_path / "run.json").write_text(json.dumps(stored))
    with pytest.raises(
        DataError, match=r"option shards in run.json must be an integer of at least"
    ):
        prediction_folder_status(tmp_path)
