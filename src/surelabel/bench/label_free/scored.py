"""What a method says of the pictures, and what a picture costs it."""

import tempfile
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.utils.flop_counter import FlopCounterMode

from surelabel.bench.cells import Cells
from surelabel.bench.label_free.pictures import Pictures
from surelabel.config import Run
from surelabel.data import FeatureCache
from surelabel.recognizer import Recognizer
from surelabel.records import Array, Images, LabelledImages

TIMED = 32  # pictures that cost is measured on, one process, nothing cached


@dataclass(frozen=True)
class Scored:
    """What one recognizer came to.

    Attributes:
        validation, test: Its scores, ``(n, c)``.
        logits: Of the test pictures, calibrated without labels; with labels for the linear probe,
            ``(n, c)``.
        parameters: That were learnt.
        passes: Encoder passes a picture.
        flops: A picture, of all that torch multiplies.
        seconds: A picture, of one core's time, decoding included.
    """

    validation: Array
    test: Array
    logits: Array
    parameters: int
    passes: float
    flops: float
    seconds: float


def scored(cells: Cells, pictures: Pictures, run: Run, unlabelled: int) -> Scored:
    """The scores of a run that has seen the training pictures, all without labels but one method's.

    Args:
        cells: Where they are kept.
        pictures: The archive.
        run: What recognizer.
        unlabelled: How many of the training pictures it may adapt to.

    Raises:
        DataError: a file is damaged, or none can be written.
    """

    def work() -> dict[str, Any]:
        names, train = pictures.test.names, pictures.train
        archive = Images(train.paths[:unlabelled])
        recognizer = Recognizer(run, names)
        if recognizer.method.learns_from == "labels":
            recognizer.fit(train).calibrate(pictures.validation)
        else:
            if recognizer.method.learns_from == "images":
                recognizer.fit(archive)
            recognizer.calibrate(archive)
        test = recognizer.predict(pictures.test)
        assert test.logits is not None
        return {
            "validation": recognizer.predict(pictures.validation).scores,
            "test": test.scores,
            "logits": test.logits,
            "cost": _cost(recognizer, pictures.test),
        }

    shapes = {
        "validation": pictures.validation.targets.shape,
        "test": pictures.test.targets.shape,
        "logits": pictures.test.targets.shape,
        "cost": (4,),
    }
    found = cells.arrays(pictures.identity, run, unlabelled, shapes=shapes, otherwise=work)
    learnt, passes, flops, seconds = found["cost"].tolist()
    return Scored(
        validation=found["validation"],
        test=found["test"],
        logits=found["logits"],
        parameters=int(learnt),
        passes=passes,
        flops=flops,
        seconds=seconds,
    )


def _cost(recognizer: Recognizer, pictures: LabelledImages) -> Array:
    """Learnt parameters, then passes, FLOPs and seconds a picture."""
    some, usual = pictures.take(range(min(TIMED, len(pictures)))), recognizer.cache
    learnt = sum(p.numel() for p in recognizer.method.parameters() if p.requires_grad)
    recognizer.method.requires_grad_(False)  # the counter follows gradients where there are any
    seconds, flops, passes = [], 0, 0
    for counted in (False, False, True):
        with tempfile.TemporaryDirectory() as folder:
            recognizer.cache = FeatureCache(folder)
            counter = FlopCounterMode(display=False)
            start = time.process_time()
            if counted:
                with counter:
                    found = recognizer.predict(some, workers=0)
                flops = counter.get_total_flops()
                passes = found.work.passes if found.work else 0
            else:
                recognizer.predict(some, workers=0)
                seconds.append(time.process_time() - start)
    recognizer.cache = usual
    each = np.array([passes, flops, min(seconds)]) / len(some)
    return np.concatenate([[learnt], each])
