"""Kill processes of `surelabel tag --shard` at random times, and check what is left.

    python tests/robustness/kills_of_shards.py [--long] [--seed SEED]

Three processes write the shards of one run to one folder. A process is killed by SIGKILL, and is
started again until its shard is complete. No finished part may change, and the folder must read as
the predictions of one uninterrupted run. The default is 1 kill in a few seconds; --long is 50
kills in about five minutes.
"""

import argparse
import hashlib
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from forked_commands import fork_command, kill_after_or_wait

from surelabel.config import Run
from surelabel.data import collection, prediction_shards, read_predictions
from surelabel.features import FeatureCache
from surelabel.recognizer import Recognizer

N_IMAGES, N_SHARDS, BLOCK_SIZE = 24, 3, 4
LABELS = ["lion", "guitar"]


def set_block_size():
    """Make blocks of four images."""
    prediction_shards.BATCH_SIZE = BLOCK_SIZE


def start_command(folder, *arguments):
    """Start a process that tags the images of a folder with an empty cache."""
    line = ["tag", "images", "--labels", ", ".join(LABELS), "--workers", "0", *arguments]
    cache = tempfile.mkdtemp(dir=folder.parent)
    shutil.copytree(folder.parent / "texts", cache, dirs_exist_ok=True)
    return fork_command(
        folder, line, cache=cache, messages=folder.parent / "messages.txt", prepare=set_block_size
    )


def start_shard(folder, number):
    """Start the process of a shard."""
    return start_command(folder, "--shard", f"{number}/{N_SHARDS}", "--out", "out")


def part_hashes(folder):
    """Return a hash of each part, by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.glob("out/part-*.parquet")
    }


def write_with_kills(folder, max_kills, random, seconds):
    """Write all shards, and kill the first one; return the numbers of kills and of parts left."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    others = [start_shard(folder, number) for number in range(2, N_SHARDS + 1)]
    kills, left, is_complete = 0, 0, False
    while not is_complete:
        before = part_hashes(folder)
        is_last = kills == max_kills
        process = start_shard(folder, 1)
        limit = random.uniform(0.0, seconds)
        is_killed = kill_after_or_wait(process, limit, wait=is_last)
        kills, is_complete = kills + is_killed, not is_killed
        after = part_hashes(folder)
        assert before.items() <= after.items(), "a finished part was changed"
        left += len(after) - len(before)
    for process in others:
        kill_after_or_wait(process, 0.0, wait=True)
    return kills, left


def check_folder(folder, expected):
    """Check that the folder contains the predictions of one run, and nothing else."""
    found = read_predictions(folder / "out")
    assert found.paths == expected.paths
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)  # batches differ
    names = sorted(path.name for path in (folder / "out").iterdir())
    parts = [f"part-{number:06}.parquet" for number in range(N_IMAGES // BLOCK_SIZE)]
    assert names == [*parts, "run.json"], names


def main():
    """Run the kills and print one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="50 kills")
    parser.add_argument("--seed", type=int, default=0, help="seed of the times of the kills")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # a process that is forked beside threads of OpenMP can block
    n_kills, random = 50 if arguments.long else 1, np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "run")
        (folder / "images").mkdir(parents=True)
        Recognizer(Run(), LABELS, cache=FeatureCache(Path(parent, "texts")))
        for path in collection("scenes-80", split="test").paths[:N_IMAGES]:
            shutil.copy(path, folder / "images")
        kill_after_or_wait(start_command(folder, "--out", "one.parquet"), 0, wait=True)
        start = time.perf_counter()
        kill_after_or_wait(start_shard(folder, 1), 0, wait=True)
        seconds = time.perf_counter() - start
        kills, n_left, runs = 0, 0, 0
        while kills < n_kills:
            n_new, n_parts = write_with_kills(folder, n_kills - kills, random, seconds)
            kills, n_left, runs = kills + n_new, n_left + n_parts, runs + 1
            check_folder(folder, read_predictions(folder / "one.parquet"))
    print(f"{kills} kills of running processes, {runs} complete folders, no part changed or lost")


if __name__ == "__main__":
    main()
