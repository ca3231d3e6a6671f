"""Kill processes that write an index at random times, and check what they leave.

    python tests/robustness/kills_while_indexing.py [--long] [--seed SEED]

Every process is killed by SIGKILL while it creates an index, adds blocks of images, merges shards,
removes images or upgrades an index of surelabel 0.1.0. Afterwards the index must open, contain
every finished block and nothing but whole blocks, and give the hits of a search over all images.
The next writer must complete the index and leave no file of the killed process. The default is 3
kills in about a second; --long is 50 kills in about two minutes.
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
from scipy.special import expit

from surelabel.records import Predictions
from surelabel.retrieval import Index

SAVED_INDEX = Path(__file__).parents[1] / "saved" / "0.1.0" / "index"
BLOCK_SIZES = (1, 40, 3, 200, 7)  # images of successive blocks, so that shards are merged
N_REMOVED = 2  # images that are removed after each fifth block
MAX_STEPS = 7  # maximum number of finished blocks before a kill; 3 in the short form
KINDS = ("create", "add", "upgrade")


def block(number):
    """Predictions of one block, which depend on the number of the block only."""
    random = np.random.default_rng(number)
    n = BLOCK_SIZES[number % len(BLOCK_SIZES)]
    logits = random.standard_normal((n, 4)).astype(np.float32)
    features = random.standard_normal((n, 8)).astype(np.float16)
    paths = [f"/images/{number:04}/{row:03}.jpg" for row in range(n)]
    return Predictions(paths, list("abcd"), logits, logits, "by hand", "model", features)


def is_removed(path):
    """Whether the writer removes an image: the first images of each block of 200."""
    number, name = path.split("/")[-2:]
    return BLOCK_SIZES[int(number) % 5] == 200 and int(name[:3]) < N_REMOVED


def write(folder, kind, first, report):
    """Write until the process is killed; report the number of each finished block.

    Args:
        folder: Folder of the index.
        kind: What the process does, an entry of KINDS.
        first: Number of the first block that is not in the index yet.
        report: File to which a line is written when the work starts and after each block.
    """
    print("start", file=report, flush=True)
    if kind == "upgrade":
        Index.open(folder).upgrade()
        print("upgraded", file=report, flush=True)
        time.sleep(60)
    index = None if kind == "create" else Index.open(folder)
    for number in range(first, first + 1000):
        made = block(number)
        if index is None:
            index = Index.create(folder, made, root="/images")
        else:
            index.add(made)
        if removed := [path for path in made.paths if is_removed(path)]:
            index.remove(removed)
        print(number, file=report, flush=True)


def killed_writer(folder, kind, n_steps, seconds):
    """Start a writer, kill it, and return the lines that it reported.

    Args:
        folder: Folder of the index.
        kind: What the process does, an entry of KINDS.
        n_steps: Number of blocks that the writer finishes before the kill; 0 for an upgrade.
        seconds: Time between the last finished block and the kill.
    """
    read_end, write_end = os.pipe()
    writer = os.fork()
    if writer == 0:
        try:
            with os.fdopen(write_end, "w") as report:
                write(folder, kind, 1 if kind == "add" else 0, report)
        finally:
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end) as report:
        lines = [report.readline().strip() for _ in range(1 + n_steps)]
        time.sleep(seconds)
        os.kill(writer, signal.SIGKILL)
        _, status = os.waitpid(writer, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, "the writer ended before it was killed"
        return lines + report.read().split()


def check_blocks(index, n_finished):
    """Check that an index has all finished blocks, at most one more, and the right hits."""
    blocks = {path.split("/")[-2] for path in index.paths}
    numbers = range(max(n_finished, len(blocks)))
    assert blocks == {f"{number:04}" for number in numbers}, "a finished block is lost"
    assert len(blocks) <= n_finished + 1
    logits = {}
    for number in numbers:
        made = block(number)
        logits |= zip(made.paths, made.logits.astype(float), strict=True)
    removable = {path for path in logits if is_removed(path)}
    last = {path for path in removable if path.split("/")[-2] == f"{len(blocks) - 1:04}"}
    assert removable - last <= logits.keys() - set(index.paths) <= removable, "a block is not whole"
    hits = index.search("a & c & !d", k=len(logits))
    assert [hit.path for hit in hits if not hit.path.startswith("/images/")] == []
    expected = sorted(
        (expit(z[0]) * expit(z[2]) * expit(-z[3]) for z in map(logits.get, index.paths)),
        reverse=True,
    )
    np.testing.assert_allclose([hit.probability for hit in hits], expected, rtol=1e-6)


def check_upgraded(index, was_upgraded):
    """Check that an index of 0.1.0 has its images and hits, in either version."""
    old = Index.open(SAVED_INDEX)
    assert index.paths == old.paths
    assert index.search("lion & !car", 40) == old.search("lion & !car", 40)
    version = json.loads((index.folder / "index.json").read_text())["version"]
    assert version == 2 if was_upgraded else version in (1, 2)


def check_folder(folder, kind, lines):
    """Check a folder after a kill, complete the index, and check that no other file is left."""
    finished = [int(line) for line in lines if line.isdigit()]
    n_finished = max(finished, default=-1) + 1
    if not (folder / "index.json").exists():
        assert kind == "create", "the index is lost"
        assert not finished, "the index is lost"
        Index.create(folder, block(0), root="/images")
        n_finished = 1
    index = Index.open(folder)
    if kind == "upgrade":
        check_upgraded(index, "upgraded" in lines)
    else:
        check_blocks(index, n_finished)
    index.upgrade()
    if kind != "upgrade":
        number = len({path.split("/")[-2] for path in index.paths})
        made = block(number)
        index.add(made)
        index = Index.open(folder)
        assert set(made.paths) <= set(index.paths)
    else:
        check_upgraded(Index.open(folder), True)
    fields = json.loads((folder / "index.json").read_text())
    listed = {"index.json", "index.lock"}.union(*(shard["files"] for shard in fields["shards"]))
    assert {file.name for file in folder.iterdir()} == listed, "files of the killed process remain"


def succeeds(check, *arguments):
    """Run a check in a forked process, so that this process stays without threads."""
    checker = os.fork()
    if checker == 0:
        try:
            check(*arguments)
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)
    return os.waitpid(checker, 0)[1] == 0


def prepared_folder(parent, kind):
    """Return a new folder for a writer: empty, with one block, or with an index of 0.1.0."""
    folder = parent / "index"
    shutil.rmtree(folder, ignore_errors=True)
    if kind == "add":
        assert succeeds(Index.create, folder, block(0))
    elif kind == "upgrade":
        shutil.copytree(SAVED_INDEX, folder)
    return folder


def main():
    """Run the kills and print one line; the exit status is 1 after a failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="50 kills instead of 3")
    parser.add_argument("--seed", type=int, default=0, help="seed of the times of the kills")
    arguments = parser.parse_args()
    random, failures, n_blocks = np.random.default_rng(arguments.seed), 0, 0
    kinds, max_steps = ((KINDS * 17)[:50], MAX_STEPS) if arguments.long else (KINDS, 3)
    with tempfile.TemporaryDirectory() as parent:
        times = [time.perf_counter()]
        for _ in range(2):
            prepared_folder(Path(parent), "add")
            times.append(time.perf_counter())
        seconds = times[2] - times[1]  # for one block, without the first use of the libraries
        for kind in kinds:
            folder = prepared_folder(Path(parent), kind)
            n_steps = 0 if kind == "upgrade" else int(random.integers(max_steps + 1))
            lines = killed_writer(folder, kind, n_steps, random.uniform(0, 1.5 * seconds))
            n_blocks += len(lines) - 1
            if not succeeds(check_folder, folder, kind, lines):
                failures += 1
                print(f"after a kill while the process should {kind}: {lines}", file=sys.stderr)
    print(
        f"{len(kinds)} kills, {n_blocks} finished steps, {failures} damaged or incomplete indexes"
    )
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
