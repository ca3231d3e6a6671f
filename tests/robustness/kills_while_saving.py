"""Kill processes that save or fit a recognizer at random times, and check what they leave.

    python tests/robustness/kills_while_saving.py [--long] [--seed SEED]

Every process is killed by SIGKILL while it saves recognizers to one folder (`save`), saves them as
on a file system that cannot exchange two folders (`save by two renames`), or fits a recognizer with
a checkpoint and two folds and then saves it (`fit`). Afterwards the folder must contain the old or
the new recognizer; the next process must resume the fit from every finished epoch; and the next
save must leave no file of the killed process. Only kills of a running process count. The default is
1 kill of every kind in about two seconds; --long is 50 kills of every kind in about three minutes.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from surelabel import files
from surelabel.config import load_run
from surelabel.recognizer import Recognizer
from surelabel.records import LabelledFeatures

NAMES, WIDTH, N_IMAGES, EPOCHS, FOLDS = ["lion", "guitar", "car"], 512, 128, 4, 2
KINDS = ("save", "save by two renames", "fit")


def training_data():
    """Return vectors and targets, the same in every process."""
    random = np.random.default_rng(0)
    features = random.normal(size=(N_IMAGES, WIDTH)).astype(np.float32)
    targets = (features[:, :3] + random.normal(size=(N_IMAGES, 3)) > 1).astype(float)
    return LabelledFeatures(names=NAMES, features=features, targets=targets)


def unfitted(seed=0):
    """Return a recognizer that is not fitted."""
    settings = [f"encoder.name=features:{WIDTH}", "method.name=linear", f"epochs={EPOCHS}"]
    return Recognizer(load_run(overrides=[*settings, f"seed={seed}", "batch_size=32"]), NAMES)


def save_again_and_again(folder, recognizers, report):
    """Save recognizers in turn until the process is killed."""
    print("start", file=report, flush=True)
    while True:
        for recognizer in recognizers:
            recognizer.save(folder)


def save_by_two_renames(folder, recognizers, report):
    """Save recognizers in turn, as on a slow file system that cannot exchange two folders."""
    replace = Path.replace

    def replace_slowly(path, target):
        replace(path, target)
        if target.suffix == ".old":
            time.sleep(0.01)

    files._exchange_paths, Path.replace = lambda *_: False, replace_slowly
    save_again_and_again(folder, recognizers, report)


def fit_and_save(folder, _, report):
    """Fit with a checkpoint, report every epoch after it is stored, and save."""
    print("start", file=report, flush=True)
    recognizer, checkpoint = unfitted(), f"{folder}.unfinished"
    recognizer.fit(
        training_data(),
        folds=FOLDS,
        checkpoint=checkpoint,
        progress=lambda done, total: print(total, done, file=report, flush=True),
    )
    recognizer.save(folder)
    print("saved", file=report, flush=True)


WRITERS = dict(zip(KINDS, (save_again_and_again, save_by_two_renames, fit_and_save), strict=True))


def killed_writer(folder, kind, recognizers, seconds):
    """Start a writer, kill it, and return the lines that it reported.

    Args:
        folder: Folder of the recognizer.
        kind: What the process does, an entry of KINDS.
        recognizers: Recognizers to save in turn.
        seconds: Time between the start of the work and the kill. If None, the process is not
            killed.

    Returns:
        Reported lines, and whether the process was running when it was killed.
    """
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        writer = os.fork()
    if writer == 0:
        try:
            with os.fdopen(write_end, "w") as report:
                WRITERS[kind](folder, recognizers, report)
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end) as report:
        lines = [report.readline().strip()]
        if seconds is None:
            lines += report.read().splitlines()
        else:
            time.sleep(seconds)
            os.kill(writer, signal.SIGKILL)
        _, status = os.waitpid(writer, 0)
        assert os.WIFSIGNALED(status) or status == 0, "the writer failed"
        return lines + report.read().splitlines(), os.WIFSIGNALED(status)


def check_recognizer(folder, fingerprints):
    """Check that the folder is one of some recognizers, also if it has to be restored first."""
    was_missing = not folder.exists()
    assert Recognizer.load(folder).fingerprint in fingerprints, "another recognizer"
    return was_missing


def check_no_leftovers(folder, recognizer):
    """Check that the next save leaves nothing but the recognizer."""
    recognizer.save(folder)
    assert os.listdir(folder.parent) == [folder.name], "files of the killed process remain"
    assert Recognizer.load(folder).fingerprint == recognizer.fingerprint


def finished_epochs(lines):
    """Return the number of epochs of the whole fit that a process reported as stored."""
    done = [int(line.split()[1]) for line in lines if line.startswith(f"{EPOCHS} ")]
    return max(done, default=0)


def first_epoch(lines):
    """Return the first epoch of the whole fit that a process computed, or the one after the last.

    A process that was killed before its first epoch tells nothing, and the result is None.
    """
    done = [int(line.split()[1]) for line in lines if line.startswith(f"{EPOCHS} ")]
    is_later = any(line.startswith(f"{FOLDS} ") or line == "saved" for line in lines)
    return min(done) if done else EPOCHS + 1 if is_later else None


def kill_fits(parent, n_kills, random, old, expected, seconds):
    """Kill a fit at random times until it ends, and repeat; return the numbers of kills and fits.

    Args:
        parent: Empty folder.
        n_kills: Number of kills of running processes.
        random: Generator of the times of the kills.
        old: Recognizer that the folder contains before the first fit.
        expected: Fingerprint of the recognizer of a fit that is not interrupted.
        seconds: Duration of a fit that is not interrupted.
    """
    folder, kills, fits = parent / "recognizer", 0, 0
    while kills < n_kills:
        old.save(folder)
        stored, is_saved = 0, False
        while not is_saved:
            moment = random.uniform(0.0, seconds) if kills < n_kills else None
            lines, was_killed = killed_writer(folder, "fit", (), moment)
            kills += was_killed
            begin = first_epoch(lines)
            assert begin is None or begin == stored + 1 or begin == stored + 2, "epochs are lost"
            stored = max(stored, finished_epochs(lines))
            is_saved = "saved" in lines
            check_recognizer(folder, {expected} if is_saved else {old.fingerprint, expected})
            is_saved = is_saved or Recognizer.load(folder).fingerprint == expected
        fits += 1
        again = unfitted().fit(training_data(), folds=FOLDS, checkpoint=f"{folder}.unfinished")
        check_no_leftovers(folder, again)
    return kills, fits


def kill_saves(parent, kind, n_kills, random, recognizers):
    """Kill saving processes; return the number of kills and of folders that were restored."""
    folder, restored = parent / "recognizer", 0
    fingerprints = {recognizer.fingerprint for recognizer in recognizers}
    start = time.perf_counter()
    recognizers[0].save(folder)
    seconds = time.perf_counter() - start
    for _ in range(n_kills):
        _, was_killed = killed_writer(folder, kind, recognizers, random.uniform(0, 4 * seconds))
        assert was_killed
        restored += check_recognizer(folder, fingerprints)
        check_no_leftovers(folder, recognizers[0])
    return n_kills, restored


def main():
    """Run the kills and print one line for each kind of process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="50 kills of every kind of process")
    parser.add_argument("--seed", type=int, default=0, help="seed of the times of the kills")
    arguments = parser.parse_args()
    n_kills, random = 50 if arguments.long else 1, np.random.default_rng(arguments.seed)
    recognizers = [unfitted(seed).fit(training_data()) for seed in (1, 2)]
    start = time.perf_counter()
    expected = unfitted().fit(training_data(), folds=FOLDS).fingerprint
    seconds = time.perf_counter() - start
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as parent:
            if kind == "fit":
                kills, fits = kill_fits(
                    Path(parent), n_kills, random, recognizers[0], expected, seconds
                )
                print(f"{kind}: {kills} kills of running processes, {fits} fits, none lost")
            else:
                kills, restored = kill_saves(Path(parent), kind, n_kills, random, recognizers)
                print(f"{kind}: {kills} kills of running processes, {restored} folders restored")


if __name__ == "__main__":
    main()
