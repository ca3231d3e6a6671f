"""Speed and memory of training and of use, each in a process of its own."""

import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surelabel.bench.cells import Cells
from surelabel.bench.open_vocabulary.pictures import Pictures
from surelabel.bench.open_vocabulary.plan import COSTS, Plan
from surelabel.bench.open_vocabulary.taught import run_of
from surelabel.config import Run
from surelabel.data import FeatureCache
from surelabel.recognizer import Recognizer
from surelabel.records import LabelledImages

PASSES = (1, 4)  # of two trainings: what they differ by is learning alone
RESET, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def costs(pictures: Pictures, plan: Plan, cells: Cells) -> list[dict[str, Any]]:
    """One entry a row of ``COSTS``.

    Returns:
        ``title``; ``train`` and ``test`` pictures a second, training from cached features and use
        with the encoder, decoding left out; ``train_memory`` and ``test_memory``, the peak above
        what is held before, in MiB; ``parameters``.

    Raises:
        DataError: a file of ``cells`` is damaged, or none can be written.
    """
    found = []
    for title, changed in COSTS.items():
        run = run_of(pictures.domain, changed, plan, 0)
        some = pictures.train.take(range(min(plan.timed, len(pictures.train))))
        key = ("cost", pictures.identity, run, plan.timed)
        one = cells.value(*key, otherwise=partial(_in_a_process, run, some))
        found.append({"title": title} | one)
    return found


def cost(run: Run, pictures: LabelledImages) -> dict[str, float]:
    """What one run costs here; memory is told apart from that of others in a fresh process."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        recognizer = Recognizer(run, pictures.names, cache=FeatureCache(folder))
        shown = np.flatnonzero(pictures.targets.any(axis=1))
        recognizer.fit(pictures.take(shown[:2]))  # loads what is loaded on first use
        start, before = time.process_time(), peak(reset=True)
        found = recognizer.predict(pictures, workers=0)
        assert found.work is not None
        seconds = time.process_time() - start - found.work.decode_seconds
        test_memory, before = peak() - before, peak(reset=True)
        taken = []
        for epochs in PASSES:
            longer = replace(run, epochs=epochs)
            start = time.process_time()
            Recognizer(longer, pictures.names, cache=recognizer.cache).fit(pictures)
            taken.append(time.process_time() - start)
    learnt = sum(p.numel() for p in recognizer.method.parameters() if p.requires_grad)
    return {
        "train": len(pictures) * (PASSES[1] - PASSES[0]) / max(taken[1] - taken[0], 1e-9),
        "test": len(pictures) / seconds,
        "train_memory": peak() - before,
        "test_memory": test_memory,
        "parameters": learnt,
    }


def peak(*, reset: bool = False) -> float:
    """The most memory held since the last reset, in MiB; NaN where only Linux would know."""
    if not STATUS.exists():
        return float("nan")
    if reset:
        RESET.write_text("5")
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _in_a_process(run: Run, pictures: LabelledImages) -> dict[str, float]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(cost, run, pictures).result()
