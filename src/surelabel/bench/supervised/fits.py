"""Fit and calibrate recognizers on few labelled images, and predict the test images."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.bench.image_splits import EncoderImageSplits
from surelabel.bench.result_cache import ResultCache, result_cache_digest
from surelabel.bench.supervised.plan import CALIBRATOR
from surelabel.config import Choice, Run
from surelabel.recognizer import Recognizer
from surelabel.recognizer.calibrating import fit_recognizer_calibration
from surelabel.recognizer.inputs import encode_recognizer_input
from surelabel.records import Images

ImageRows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SupervisedPredictions:
    """Test predictions and cost of one recognizer.

    Attributes:
        scores: Test scores, ``(n, c)``.
        logits: Calibrated test log-odds, ``(n, c)``.
        passes: Number of encoder passes per image.
        seconds: Processor time in seconds of the fits on all images and on the folds, and of the
            calibration. The time does not include encoding the features. For methods that are not
            fitted on labels, it is the time of the calibration.
    """

    scores: Array
    logits: Array
    passes: float
    seconds: float


@dataclass(frozen=True)
class LabelFreeScores:
    """Scores of a method that is not fitted on labels.

    Attributes:
        train: Log-odds or raw scores of m training images, ``(m, c)``.
        rows: Row numbers of the m images in the training split, in ascending order, ``(m,)``.
        test_scores: Scores of the test images, ``(n, c)``.
        test: Log-odds or raw scores of the test images, ``(n, c)``.
        passes: Number of encoder passes per image.
    """

    train: Array
    rows: ImageRows
    test_scores: Array
    test: Array
    passes: float


def predict_supervised_test(
    cache: ResultCache, images: EncoderImageSplits, run: Run, rows: ImageRows, *, folds: int
) -> SupervisedPredictions:
    """Fit and calibrate a recognizer on some training images, and predict the test images.

    The calibrator is fitted on out-of-fold scores of the same training images.

    Args:
        cache: Cache of the predictions.
        images: Training and test images.
        run: Configuration of the recognizer.
        rows: Row numbers of the labelled training images.
        folds: Number of folds.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """

    def compute() -> Mapping[str, Any]:
        recognizer, labelled = Recognizer(run, images.test.names), images.train.take(rows)
        encode_recognizer_input(labelled, recognizer.method, recognizer.encoder, recognizer.cache)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # labels without positive images
            recognizer.fit(labelled, folds=folds)
        seconds = time.process_time() - start
        scores, logits, passes = _predict_test(recognizer, images)
        return {"scores": scores, "logits": logits, "cost": [passes, seconds]}

    shape = images.test.targets.shape
    arrays = cache.load_or_compute_arrays(
        *("predictions", images.fingerprint, run, rows.tolist(), folds),
        shapes={"scores": shape, "logits": shape, "cost": (2,)},
        compute=compute,
    )
    passes, seconds = arrays["cost"].tolist()
    return SupervisedPredictions(arrays["scores"], arrays["logits"], passes, seconds)


def score_without_labels(
    cache: ResultCache, images: EncoderImageSplits, method: str, rows: ImageRows, *, unlabelled: int
) -> LabelFreeScores:
    """Score training images and the test images with a method that is not fitted on labels.

    Args:
        cache: Cache of the scores.
        images: Training and test images.
        method: Key of the method, with its default settings.
        rows: Row numbers of the scored training images, in ascending order.
        unlabelled: Number of the first training images, on which the method is fitted, if it learns
            from unlabelled images.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    run = Run(encoder=Choice(images.encoder), method=Choice(method), calibrator=Choice(CALIBRATOR))

    def compute() -> Mapping[str, Any]:
        recognizer = Recognizer(run, images.test.names)
        if recognizer.method.learns_from == "images":
            recognizer.fit(Images(images.train.paths[:unlabelled]))
        train = recognizer.predict(images.train.take(rows), strict=True)
        scores, _, passes = _predict_test(recognizer, images)
        return {
            "train": recognizer.logits_of(train.scores),
            "test_scores": scores,
            "test": recognizer.logits_of(scores),
            "passes": [passes],
        }

    shape = images.test.targets.shape
    arrays = cache.load_or_compute_arrays(
        *("scores", images.fingerprint, run, rows.tolist(), unlabelled),
        shapes={
            "train": (len(rows), shape[1]),
            "test_scores": shape,
            "test": shape,
            "passes": (1,),
        },
        compute=compute,
    )
    return LabelFreeScores(
        arrays["train"], rows, arrays["test_scores"], arrays["test"], arrays["passes"].item()
    )


def calibrate_label_free_scores(
    cache: ResultCache, images: EncoderImageSplits, scores: LabelFreeScores, rows: ImageRows
) -> SupervisedPredictions:
    """Calibrate scores on some labelled training images, as ``Recognizer.calibrate`` does.

    Args:
        cache: Cache of the calibrated log-odds.
        images: Training images with targets.
        scores: Scores of the training images of all samples, and of the test images.
        rows: Row numbers of the labelled training images, a subset of ``scores.rows``.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    raw = scores.train[np.searchsorted(scores.rows, rows)]

    def compute() -> Mapping[str, Any]:
        labelled = images.train.take(rows)
        start = time.process_time()
        run = Run(calibrator=Choice(CALIBRATOR))
        calibration = fit_recognizer_calibration(run, raw, labelled.targets, labelled.known)
        seconds = time.process_time() - start
        return {"logits": calibration.logits(scores.test), "seconds": [seconds]}

    arrays = cache.load_or_compute_arrays(
        *("calibrated", images.fingerprint, result_cache_digest(raw, scores.test), rows.tolist()),
        shapes={"logits": scores.test.shape, "seconds": (1,)},
        compute=compute,
    )
    return SupervisedPredictions(
        scores.test_scores, arrays["logits"], scores.passes, arrays["seconds"].item()
    )


def _predict_test(
    recognizer: Recognizer, images: EncoderImageSplits
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating] | None, float]:
    """Return scores, calibrated log-odds and encoder passes per image of the test images.

    Without a calibration, the log-odds are None.
    """
    test = recognizer.predict(images.test, strict=True)
    passes = test.encoding_stats.encoder_passes if test.encoding_stats else 0
    return test.scores, test.logits, passes / len(images.test)
