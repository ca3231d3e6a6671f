import shutil
import sys

import numpy as np
import pytest

from surelabel.data import (
    ImageShard,
    collection,
    prediction_folder_status,
    prediction_shards,
    read_predictions,
    write_predictions,
)
from surelabel.errors import DataError
from surelabel.recognizer import Recognizer, predict_image_shard

N_IMAGES = 12


@pytest.fixture(scope="module")
def recognizer():
    return Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])


@pytest.fixture
def images(tmp_path, monkeypatch):
    """Twelve images, of which two cannot be read; a shard has blocks of two images."""
    monkeypatch.setattr(prediction_shards, "BATCH_SIZE", 2)
    (tmp_path / "images").mkdir()
    paths = collection("scenes-80", split="test").paths[:N_IMAGES]
    copies = [str(shutil.copy(path, tmp_path / "images")) for path in paths]
    for path in (copies[3], copies[4], copies[5]):  # a whole block, and half of another
        open(path, "wb").close()
    return copies


def write_shard(folder, recognizer, images, text, **changes):
    number, count = map(int, text.split("/"))
    arguments = {"options": {}, "workers": 0}
    blocks = predict_image_shard(
        folder, recognizer, images, ImageShard(number, count), **arguments | changes
    )
    return list(blocks)


def test_all_shards_in_any_order_read_as_one_run(recognizer, images, tmp_path):
    for text in ("3/3", "1/3", "2/3"):
        write_shard(tmp_path / "out", recognizer, images, text)
    found = read_predictions(tmp_path / "out")
    once = recognizer.predict(images, workers=0)
    write_predictions(once, tmp_path / "one.parquet")
    expected = read_predictions(tmp_path / "one.parquet")
    assert (found.paths, found.skipped) == (expected.paths, expected.skipped)
    assert (found.model, found.calibration) == (expected.model, expected.calibration)
    np.testing.assert_allclose(found.logits, expected.logits, atol=1e-5)
    assert found.hashes == list(once.hashes)
    assert found.features is None


def test_finished_blocks_are_not_predicted_again(recognizer, images, tmp_path):
    out = tmp_path / "out"
    blocks = predict_image_shard(out, recognizer, images, ImageShard(1, 2), options={}, workers=0)
    next(blocks)
    blocks.close()
    (part,) = out.glob("part-*.parquet")
    before = part.stat()
    steps = []
    rest = write_shard(out, recognizer, images, "1/2", progress=lambda *step: steps.append(step))
    assert [len(block) + len(block.skipped) for block in rest] == [2, 2]
    assert (steps[0], steps[-1]) == ((2, 6), (6, 6))
    assert part.stat() == before
    assert write_shard(out, recognizer, images, "1/2") == []
    assert prediction_folder_status(out).shards[0].missing == 0


def test_a_shard_without_a_readable_image_is_finished(recognizer, images, tmp_path):
    for path in images:
        open(path, "wb").close()
    write_shard(tmp_path / "out", recognizer, images, "2/2")
    counts = prediction_folder_status(tmp_path / "out").shards[1]
    assert (counts.predicted, counts.failed, counts.missing) == (0, 6, 0)


def test_a_shard_without_images_is_finished(recognizer, images, tmp_path):
    write_shard(tmp_path / "out", recognizer, images[:2], "3/3")
    assert prediction_folder_status(tmp_path / "out").shards[2].images == 0


def test_an_unreadable_image_names_the_shard_if_it_is_an_error(recognizer, images, tmp_path):
    with pytest.raises(DataError, match=r"Shard 2/3: .*empty file"):
        write_shard(tmp_path / "out", recognizer, images, "2/3", strict=True)


def test_another_recognizer_is_refused(recognizer, images, tmp_path):
    write_shard(tmp_path / "out", recognizer, images, "1/2")
    other = Recognizer.zero_shot("tiny-vit", ["lion"])
    with pytest.raises(DataError, match="a run with another recognizer and other labels"):
        write_shard(tmp_path / "out", other, images, "2/2")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of the file size")
def test_a_full_disk_names_the_shard_and_leaves_the_finished_parts(recognizer, images, tmp_path):
    import resource

    out = tmp_path / "out"
    write_shard(tmp_path / "all", recognizer, images, "1/1")  # the features are in the cache
    write_shard(out, recognizer, images, "1/2")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(
            DataError, match=r"Shard 2/2: .*000\d.parquet cannot be written: File to"
        ):
            write_shard(out, recognizer, images, "2/2")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    write_shard(out, recognizer, images, "2/2")
    assert prediction_folder_status(out).total.missing == 0
