"""Save recognizers to one folder from many threads and processes, and load it meanwhile.

    python tests/robustness/threads_saving.py [--long]

Four processes and eight threads save different recognizers to one folder, and another thread loads
the folder again and again. Every save and every load must succeed, every loaded recognizer must be
one that was saved, and no other file may be left. The default is 1 save for each thread and
process; --long is 25.
"""

import argparse
import os
import sys
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from surelabel.config import load_run
from surelabel.recognizer import Recognizer
from surelabel.records import LabelledFeatures

THREADS, PROCESSES, WIDTH, RECOGNIZERS = 8, 4, 512, 3


def fitted(seed):
    """Return a recognizer whose weights depend on the seed."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(40, WIDTH)).astype(np.float32)
    targets = (features[:, :2] > 0).astype(float)
    settings = [f"encoder.name=features:{WIDTH}", "method.name=linear", "epochs=1"]
    recognizer = Recognizer(load_run(overrides=settings), ["lion", "car"])
    return recognizer.fit(
        LabelledFeatures(names=["lion", "car"], features=features, targets=targets)
    )


def start_process(folder, recognizer, n_saves):
    """Fork a process that saves a recognizer; return its identifier."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        process = os.fork()
    if process == 0:
        try:
            for _ in range(n_saves):
                recognizer.save(folder)
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)
    return process


def load_until(is_finished, folder):
    """Load the folder again and again, and return the fingerprints."""
    fingerprints = []
    while not is_finished.is_set():
        fingerprints.append(Recognizer.load(folder).fingerprint)
    return fingerprints


def main():
    """Save, load and print one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="25 saves of every thread and process")
    n_saves = 25 if parser.parse_args().long else 1
    recognizers = [fitted(seed) for seed in range(RECOGNIZERS)]
    writers = (recognizers * (THREADS + PROCESSES))[: THREADS + PROCESSES]
    with tempfile.TemporaryDirectory() as parent:
        folder, is_finished = Path(parent) / "recognizer", threading.Event()
        recognizers[0].save(folder)
        processes = [start_process(folder, r, n_saves) for r in writers[THREADS:]]
        with ThreadPoolExecutor(THREADS + 1) as threads:
            loads = threads.submit(load_until, is_finished, folder)
            saves = [threads.submit(r.save, folder) for r in writers[:THREADS] * n_saves]
            errors = [error for save in saves if (error := save.exception())]
            failed = [process for process in processes if os.waitpid(process, 0)[1]]
            is_finished.set()
            loaded = loads.result()
        known = {recognizer.fingerprint for recognizer in recognizers}
        assert {*loaded, Recognizer.load(folder).fingerprint} <= known, "another recognizer"
        assert os.listdir(parent) == ["recognizer"], "temporary files remain"
    assert not errors, errors[0]
    assert not failed, "a process failed"
    print(f"{(THREADS + PROCESSES) * n_saves} saves and {len(loaded)} loads, none failed")


if __name__ == "__main__":
    main()
