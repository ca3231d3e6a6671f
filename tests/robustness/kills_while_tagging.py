"""Kill `surelabel tag` at random times, and check what is left and what the next run computes.

    python tests/robustness/kills_while_tagging.py [--long] [--seed SEED]

Every process is killed by SIGKILL while it tags images with an empty cache (`tag`), or while it
writes predictions with `--out` (`tag --out`). Afterwards the cache must contain the features of all
finished blocks, and no worker process may remain. A run with `--out` is killed again and again: it
must resume after its last finished block, and its file must equal that of an uninterrupted run.
Only kills of a running process count. The default is 1 kill of a run with `--out` in a few seconds;
--long is 50 kills of every kind in about five minutes.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from forked_commands import fork_command, kill_after, kill_after_or_wait

from surelabel.config import Run
from surelabel.data import collection, read_predictions
from surelabel.features import FeatureCache
from surelabel.recognizer import Recognizer, prediction_blocks

N_IMAGES, BLOCK_SIZE = 16, 4
LABELS = ["lion", "guitar"]
KINDS = ("tag", "tag --out")


def set_block_size():
    """Make blocks of four images."""
    prediction_blocks.IMAGES_PER_BLOCK = BLOCK_SIZE


def start_tagging(folder, kind, workers):
    """Start a process that tags the images of a folder."""
    out = ["--out", "tags.parquet"] if kind == "tag --out" else []
    line = ["tag", "images", "--labels", ", ".join(LABELS), "--workers", str(workers), *out]
    return fork_command(
        folder,
        line,
        cache=folder / "cache",
        messages=folder / "messages.txt",
        prepare=set_block_size,
    )


def finished_blocks(folder):
    """Return the number of finished blocks of an interrupted run with --out."""
    return len(list(folder.glob("tags.parquet.partial/block-*.parquet")))


def reset_cache(folder):
    """Make the cache contain only the features of texts."""
    shutil.rmtree(folder / "cache", ignore_errors=True)
    shutil.copytree(folder.parent / "texts", folder / "cache")


def kill_tags(folder, n_kills, random, seconds, fingerprint):
    """Kill runs without --out; return the numbers of kills and of images in the cache."""
    kills, cached = 0, []
    while kills < n_kills:
        reset_cache(folder)
        (folder / "messages.txt").unlink(missing_ok=True)
        process = start_tagging(folder, "tag", workers=kills % 3)
        kills += kill_after(process, random.uniform(0.0, seconds))
        messages = folder / "messages.txt"
        printed = messages.read_text().splitlines() if messages.exists() else []
        n_printed = sum(line.startswith("images/") for line in printed)
        cached.append(len(FeatureCache(folder / "cache").keys(fingerprint, "images")))
        assert cached[-1] >= n_printed, "features of a printed block are lost"
    return kills, sum(cached)


def kill_outputs(folder, n_kills, random, seconds, expected):
    """Kill runs with --out until their file is complete, and repeat.

    Returns:
        Numbers of kills, of complete files, and of blocks from which a run resumed.
    """
    kills, files, resumed = 0, 0, 0
    while kills < n_kills:
        reset_cache(folder)
        (folder / "tags.parquet").unlink(missing_ok=True)
        while not (folder / "tags.parquet").exists() or finished_blocks(folder):
            before = finished_blocks(folder)
            process = start_tagging(folder, "tag --out", workers=kills % 3)
            limit = random.uniform(0.0, seconds) if kills < n_kills else 20 * seconds
            kills += kill_after_or_wait(process, limit, wait=kills >= n_kills)
            is_complete = (folder / "tags.parquet").exists()
            assert is_complete or finished_blocks(folder) >= before, "finished blocks are lost"
            resumed += before
        files += 1
        found = read_predictions(folder / "tags.parquet")
        assert found.paths == expected.paths, "other images"
        np.testing.assert_array_equal(found.scores, expected.scores)
        left = sorted(path.name for path in folder.iterdir())
        assert left == ["cache", "images", "messages.txt", "tags.parquet"], f"files remain: {left}"
    return kills, files, resumed


def main():
    """Run the kills and print one line for each kind of run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="50 kills of every kind of run")
    parser.add_argument("--seed", type=int, default=0, help="seed of the times of the kills")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # a process that is forked beside threads of OpenMP can block
    n_kills, random = 50 if arguments.long else 1, np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "run")
        (folder / "images").mkdir(parents=True)
        for path in collection("scenes-80", split="test").paths[:N_IMAGES]:
            shutil.copy(path, folder / "images")
        texts = FeatureCache(folder.parent / "texts")
        encoder = Recognizer(Run(), LABELS, cache=texts).encoder
        reset_cache(folder)
        start = time.perf_counter()
        kill_after_or_wait(start_tagging(folder, "tag --out", workers=1), 0, wait=True)
        seconds = time.perf_counter() - start
        expected = read_predictions(folder / "tags.parquet")
        (folder / "tags.parquet").unlink()
        if arguments.long:
            kills, cached = kill_tags(folder, n_kills, random, seconds, encoder.fingerprint)
            print(f"tag: {kills} kills of running processes, {cached} images in the cache")
        kills, files, resumed = kill_outputs(folder, n_kills, random, seconds, expected)
        print(
            f"tag --out: {kills} kills of running processes, {files} complete files, "
            f"{resumed} blocks resumed, none lost"
        )


if __name__ == "__main__":
    main()
