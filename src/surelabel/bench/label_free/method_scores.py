"""Compute scores and cost per image of one recognizer of the label-free comparison."""

import tempfile
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.utils.flop_counter import FlopCounterMode

from surelabel.arrays import Array
from surelabel.bench.label_free.scene_splits import LabelFreeSplits
from surelabel.bench.result_cache import ResultCache
from surelabel.config import Run
from surelabel.features import FeatureCache
from surelabel.recognizer import Recognizer
from surelabel.records import Images, LabelledImages

TIMED_IMAGES = 32  # images for the cost measurement, in one process and without cached features


@dataclass(frozen=True)
class MethodScores:
    """Scores, log-odds and cost of one recognizer.

    Attributes:
        validation: Scores of the validation images, ``(n, c)``.
        test: Scores of the test images, ``(n, c)``.
        logits: Test log-odds, ``(n, c)``. The linear probe is calibrated on annotated images, all
            other methods on unlabelled images.
        parameters: Number of trained parameters.
        passes: Number of encoder passes per image.
        flops: Number of floating-point operations per image, as counted by torch.
        seconds: Processor time per image in seconds, including image decoding.
    """

    validation: Array
    test: Array
    logits: Array
    parameters: int
    passes: float
    flops: float
    seconds: float


def label_free_method_scores(
    cache: ResultCache, images: LabelFreeSplits, run: Run, n_unlabelled: int
) -> MethodScores:
    """Fit and calibrate a recognizer, and score the validation and test images.

    Only a method that learns from labels uses the targets of the training images.

    Args:
        cache: Cache of the scores.
        images: Train, validation and test images.
        run: Configuration of the recognizer.
        n_unlabelled: Number of training images for fitting and calibration without labels.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """

    def compute() -> dict[str, Any]:
        names, train = images.test.names, images.train
        unlabelled = Images(train.paths[:n_unlabelled])
        recognizer = Recognizer(run, names)
        if recognizer.method.learns_from == "labels":
            recognizer.fit(train).calibrate(images.validation)
        else:
            if recognizer.method.learns_from == "images":
                recognizer.fit(unlabelled)
            recognizer.calibrate(unlabelled)
        test = recognizer.predict(images.test)
        assert test.logits is not None
        return {
            "validation": recognizer.predict(images.validation).scores,
            "test": test.scores,
            "logits": test.logits,
            "cost": _cost_of_method_scores(recognizer, images.test),
        }

    shapes = {
        "validation": images.validation.targets.shape,
        "test": images.test.targets.shape,
        "logits": images.test.targets.shape,
        "cost": (4,),
    }
    arrays = cache.load_or_compute_arrays(
        images.fingerprint, run, n_unlabelled, shapes=shapes, compute=compute
    )
    parameters, passes, flops, seconds = arrays["cost"].tolist()
    return MethodScores(
        validation=arrays["validation"],
        test=arrays["test"],
        logits=arrays["logits"],
        parameters=int(parameters),
        passes=passes,
        flops=flops,
        seconds=seconds,
    )


def _cost_of_method_scores(recognizer: Recognizer, images: LabelledImages) -> Array:
    """Return trained parameters, and passes, FLOPs and seconds per image, ``(4,)``."""
    timed, original_cache = images.take(range(min(TIMED_IMAGES, len(images)))), recognizer.cache
    parameters = sum(p.numel() for p in recognizer.method.parameters() if p.requires_grad)
    recognizer.method.requires_grad_(False)  # otherwise the FLOP counter tracks gradients
    seconds, flops, passes = [], 0, 0
    for counts_flops in (False, False, True):
        with tempfile.TemporaryDirectory() as folder:
            recognizer.cache = FeatureCache(folder)
            counter = FlopCounterMode(display=False)
            start = time.process_time()
            if counts_flops:
                with counter:
                    predictions = recognizer.predict(timed, workers=0)
                flops = counter.get_total_flops()
                stats = predictions.encoding_stats
                passes = stats.encoder_passes if stats else 0
            else:
                recognizer.predict(timed, workers=0)
                seconds.append(time.process_time() - start)
    recognizer.cache = original_cache
    per_image = np.array([passes, flops, min(seconds)]) / len(timed)
    return np.concatenate([[parameters], per_image])
