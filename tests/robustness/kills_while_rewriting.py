"""Kill processes that change the images, scores or graphs of an index, at random times.

    python tests/robustness/kills_while_rewriting.py [--long] [--seed SEED]

Every process removes images, adds a block, rescores all images, builds graphs for approximate
search and compacts the index, also in sparse form, again and again, reports each finished step, and
is killed by SIGKILL. Afterwards the index must open, contain every reported step and at most one
more, and every log-odds must be that of the image and of the last rescoring. A search for similar
images must work. The next writer must complete the index and leave no file of the killed process.
The default is 4 kills in about two seconds; --long is 50 kills.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from kills_while_indexing import succeeds
from scipy.special import logit

from surelabel.records import Predictions
from surelabel.retrieval import Index, hnsw_building
from surelabel.retrieval.index_rescoring import IndexScoring

N_IMAGES, N_ADDED, N_REMOVED = 300, 20, 7
STEPS = ("remove", "add", "rescore", "ann", "compact", "sparse")
DROP_BELOW = 1e-12  # below all probabilities, so that the sparse form stores all values


def vectors_of(numbers):
    """Image vectors, ``(n, 4)``, which depend on the numbers of the images only."""
    random = np.random.default_rng(0).standard_normal((N_IMAGES + 1000 * N_ADDED, 4))
    return random[numbers].astype(np.float16)


def scores_of(vectors, level):
    """Log-odds of a scoring, which has a level of its own, ``(n, 4)``."""
    return (vectors.astype(np.float32) + np.float32(level / 4)).clip(-40, 40)


def predictions_of(numbers, level):
    """Predictions of images at a level."""
    vectors = vectors_of(numbers)
    logits = scores_of(vectors, level)
    paths = [f"/images/{number:06}.jpg" for number in numbers]
    return Predictions(paths, list("abcd"), logits, logits, f"level {level}", "model", vectors)


class State:
    """Images and level of an index after a number of steps."""

    def __init__(self):
        self.numbers, self.level, self.next = list(range(N_IMAGES)), 0, N_IMAGES

    def after(self, step):
        """Change the state as a step of the writer does, and return what the step needs."""
        if step == "remove":
            removed, self.numbers = self.numbers[:N_REMOVED], self.numbers[N_REMOVED:]
            return removed
        if step == "add":
            added = list(range(self.next, self.next + N_ADDED))
            self.numbers, self.next = [*self.numbers, *added], self.next + N_ADDED
            return added
        self.level += step == "rescore"
        return None


def write(folder, report):
    """Change the index until the process is killed; report the number of each finished step."""
    state, index = State(), Index.open(folder)
    hnsw_building.EXACT_ROWS = 0
    print("start", file=report, flush=True)
    for number in range(1000):
        step = STEPS[number % len(STEPS)]
        images = state.after(step)
        if step == "remove":
            index.remove([f"/images/{image:06}.jpg" for image in images])
        elif step == "add":
            index.add(predictions_of(images, state.level))
        elif step == "ann":
            index.build_ann()
        elif step == "compact":
            index.compact()
        elif step == "sparse":
            index.compact(drop_below=DROP_BELOW)
        else:
            level = state.level

            def score(vectors, level=level):
                return scores_of(vectors, level), scores_of(vectors, level)

            index.rescore(IndexScoring("abcd", "model", f"level {level}", score))
        print(number, file=report, flush=True)


def killed_writer(folder, n_steps, seconds):
    """Start a writer, kill it some time after a finished step, and return the number of steps."""
    read_end, write_end = os.pipe()
    writer = os.fork()
    if writer == 0:
        try:
            with os.fdopen(write_end, "w") as report:
                write(folder, report)
        finally:
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end) as report:
        lines = [report.readline() for _ in range(1 + n_steps)]
        time.sleep(seconds)
        os.kill(writer, signal.SIGKILL)
        _, status = os.waitpid(writer, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, "the writer ended before it was killed"
        return len(lines) - 1 + len(report.read().split())


def check_folder(folder, n_finished):
    """Check the index after a kill, complete it, and check that no other file is left."""
    states = []
    for n_steps in (n_finished, n_finished + 1):
        state = State()
        for number in range(n_steps):
            state.after(STEPS[number % len(STEPS)])
        states.append(state)
    index = Index.open(folder)
    numbers = [int(Path(path).stem) for path in index.paths]
    level = int(index.calibration.split()[1])
    expected = [(sorted(state.numbers), state.level) for state in states]
    assert (sorted(numbers), level) in expected, "a finished step is lost, or a step is not whole"
    vectors = np.concatenate([*index.image_vectors()])
    assert np.array_equal(vectors, vectors_of(numbers)), "rows and vectors are mixed"
    logits = np.stack([logit(index.probabilities(name)) for name in "abcd"], axis=1)
    np.testing.assert_allclose(logits, scores_of(vectors, level), rtol=1e-4, atol=1e-5)
    nearest = index.search(f'like:"{index.paths[0]}"#3')
    assert nearest[0].similarity > 0.999, "the most similar image is not found"
    index.compact()
    index.upgrade()
    fields = json.loads((folder / "index.json").read_text())
    listed = {"index.json", "index.lock"}.union(*(shard["files"] for shard in fields["shards"]))
    assert {file.name for file in folder.iterdir()} == listed, "files of the killed process remain"
    assert sorted(int(Path(path).stem) for path in Index.open(folder).paths) == sorted(numbers)


def main():
    """Run the kills and print one line; the exit status is 1 after a failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="50 kills instead of 4")
    parser.add_argument("--seed", type=int, default=0, help="seed of the times of the kills")
    arguments = parser.parse_args()
    random, failures, n_finished = np.random.default_rng(arguments.seed), 0, 0
    n_kills = 50 if arguments.long else 4
    with tempfile.TemporaryDirectory() as parent:
        start, folder = Path(parent) / "start", Path(parent) / "index"
        assert succeeds(Index.create, start, predictions_of(range(N_IMAGES), 0))
        for kill in range(n_kills):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(start, folder)
            n_steps = int(random.integers(len(STEPS))) if arguments.long else 1 + kill % 4
            n_done = killed_writer(folder, n_steps, random.uniform(0, 0.04))
            n_finished += n_done
            if not succeeds(check_folder, folder, n_done):
                failures += 1
                print(f"after a kill after {n_done} steps", file=sys.stderr)
    print(f"{n_kills} kills, {n_finished} finished steps, {failures} damaged indexes")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
