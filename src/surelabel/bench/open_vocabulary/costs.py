"""Measure speed and memory of training and prediction, in a separate process for each row."""

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

from surelabel.bench.open_vocabulary.fitted_rows import run_of_fitted_row
from surelabel.bench.open_vocabulary.plan import COST_ROWS
from surelabel.bench.open_vocabulary.scene_splits import OpenVocabularyTask
from surelabel.config import Run
from surelabel.features import FeatureCache
from surelabel.recognizer import Recognizer
from surelabel.records import LabelledImages

EPOCHS = (1, 4)  # of two fits; the difference of their times excludes set-up and encoding
RESET_FILE, STATUS_FILE = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def measure_open_vocabulary_costs(task: OpenVocabularyTask) -> list[dict[str, Any]]:
    """Measure speed and memory of each row of ``COST_ROWS``.

    Args:
        task: Images, plan and cache. Only the training images are used.

    Returns:
        One entry for each row, with the row's ``title`` and the values from `measure_run_cost`.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    images, plan, costs = task.dataset, task.plan, []
    for title, changes in COST_ROWS.items():
        run = run_of_fitted_row(images.domain, changes, plan, 0)
        timed = images.train.take(range(min(plan.timed_images, len(images.train))))
        cost = task.cache.load_or_compute(
            *("cost", images.fingerprint, run, plan.timed_images),
            compute=partial(_measure_cost_in_new_process, run, timed),
        )
        costs.append({"title": title} | cost)
    return costs


def measure_run_cost(run: Run, images: LabelledImages) -> dict[str, float]:
    """Measure speed and memory of training and prediction in this process, on one thread.

    The number of PyTorch threads of this process remains 1.

    Args:
        run: Configuration of the recognizer.
        images: Images for training and prediction.

    Returns:
        Dictionary with ``train_images_per_second``, ``predict_images_per_second``,
        ``train_memory_mib``, ``predict_memory_mib`` and ``parameters`` (number of trained
        parameters). Training uses cached features. Prediction includes the encoder, but not image
        decoding. Memory is the peak memory minus the memory in use at the start, in MiB.
    """
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        recognizer = Recognizer(run, images.names, cache=FeatureCache(folder))
        positive_rows = np.flatnonzero(images.targets.any(axis=1))
        recognizer.fit(images.take(positive_rows[:2]))  # loads modules before the measurement
        start, memory_before = time.process_time(), peak_memory_cost_mib(reset=True)
        predictions = recognizer.predict(images, workers=0)
        assert predictions.encoding_stats is not None
        decode_seconds = predictions.encoding_stats.decode_seconds
        predict_seconds = time.process_time() - start - decode_seconds
        predict_memory = peak_memory_cost_mib() - memory_before
        memory_before = peak_memory_cost_mib(reset=True)
        train_seconds = []
        for epochs in EPOCHS:
            run_with_epochs = replace(run, epochs=epochs)
            start = time.process_time()
            Recognizer(run_with_epochs, images.names, cache=recognizer.cache).fit(images)
            train_seconds.append(time.process_time() - start)
    parameters = sum(p.numel() for p in recognizer.method.parameters() if p.requires_grad)
    n_trained = len(images) * (EPOCHS[1] - EPOCHS[0])
    return {
        "train_images_per_second": n_trained / max(train_seconds[1] - train_seconds[0], 1e-9),
        "predict_images_per_second": len(images) / predict_seconds,
        "train_memory_mib": peak_memory_cost_mib() - memory_before,
        "predict_memory_mib": predict_memory,
        "parameters": parameters,
    }


def peak_memory_cost_mib(*, reset: bool = False) -> float:
    """Return the peak memory of this process since the last reset, in MiB, or NaN outside Linux.

    Args:
        reset: If True, the peak is first reset to the memory currently in use.
    """
    if not STATUS_FILE.exists():
        return float("nan")
    if reset:
        RESET_FILE.write_text("5")
    lines = STATUS_FILE.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _measure_cost_in_new_process(run: Run, images: LabelledImages) -> dict[str, float]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure_run_cost, run, images).result()
