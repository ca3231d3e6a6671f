import json
import shutil

import numpy as np
import pytest

from surelabel.data import prediction_shards, read_predictions

LINE = ("tag", "images", "--model", "recognizer")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Divide the 24 images into six blocks."""
    monkeypatch.setattr(prediction_shards, "BATCH_SIZE", 4)


def test_shards_of_several_folders_are_read_like_one_file(home, run):
    first = run(*LINE, "--shard", "1/2", "--out", "a")
    assert first.code == 0
    assert (
        "a contains predictions of 12 of 24 images, 0 failed, 12 missing. Recognizer: " in first.out
    )
    assert "\n  shard 2/2: predictions of 0 of 12 images, 0 failed, 12 missing\n" in first.out
    assert run(*LINE, "--shard", "2/2", "--out", "b").code == 0
    incomplete = run("compare", "a", "a", "labels.csv")
    assert incomplete.code == 1
    assert "a must contain predictions of all 24 images; 12 missing, and" in incomplete.err
    shutil.copytree(home / "b", home / "a", dirs_exist_ok=True)
    assert run(*LINE, "--out", "one.parquet").code == 0
    found, expected = read_predictions("a"), read_predictions("one.parquet")
    assert found.paths == expected.paths
    np.testing.assert_allclose(found.logits, expected.logits, atol=1e-5)


def test_failed_images_are_listed_and_tagged_again_on_request(home, run):
    image = sorted((home / "images").iterdir())[1]
    content = image.read_bytes()
    image.write_bytes(b"")
    line = (*LINE, "--shard", "1/2", "--out", "out")
    first = run(*line, "--json")
    assert f"images/{image.name}: empty file" in first.err
    shard = json.loads(first.out)["shards"][0]
    assert shard == {"shard": "1/2", "images": 12, "predicted": 11, "failed": 1, "missing": 0}
    image.write_bytes(content)
    again = run(*line)
    assert "12 images were predicted before an interruption." in again.err
    assert "To tag the failed images again, delete out/failed*.parquet, and run" in again.out
    for file in (home / "out").glob("failed*.parquet"):
        file.unlink()
    done = run(*line)
    assert "8 images were predicted before an interruption." in done.err
    assert "  shard 1/2: predictions of 12 of 12 images, 0 failed, 0 missing\n" in done.out


def test_selected_labels_are_in_the_parts(home, run):
    for number in (1, 2):
        options = ("--shard", f"{number}/2", "--top-k", "2", "--threshold", "0.25")
        assert run(*LINE, *options, "--out", "out").code == 0
    assert run(*LINE, "--top-k", "2", "--threshold", "0.25", "--out", "one.parquet").code == 0
    found, expected = read_predictions("out"), read_predictions("one.parquet")
    np.testing.assert_array_equal(found.shown, expected.shown)
    np.testing.assert_array_equal(found.thresholds, expected.thresholds)
    other = run(*LINE, "--shard", "1/2", "--top-k", "3", "--out", "out")
    assert other.code == 1
    assert "a run with --threshold 0.25 (not none) and --top-k 2 (not 3). Give" in other.err
