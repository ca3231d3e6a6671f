"""Evaluate and apply the recalibration of an index on the checked images of its random sample."""

from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock, Thread
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.correction_log import CorrectionLog
from surelabel.data.labels.resolution.correction_history import CorrectionHistory, target_array
from surelabel.errors import DataError, InputError, MissingPart, SurelabelError
from surelabel.evaluation.recalibration import (
    MIN_RECALIBRATION_IMAGES,
    Recalibration,
    check_recalibration_images,
    evaluate_recalibration,
)
from surelabel.retrieval import Index
from surelabel.retrieval.search_approximation import describe_sparse_form
from surelabel.web.file_access import resolve_servable_file
from surelabel.web.image_worker import ImageWorker
from surelabel.web.index_session import IndexedImage, IndexSession
from surelabel.web.indexed_images import find_images_by_path, stored_logits
from surelabel.web.recognizer_service import TASKS_MODULE, RecognizerService

APPLY_SECONDS = 24 * 3600.0
FAILURE = "The recalibration failed"
IDLE, RUNNING, APPLIED, FAILED = "idle", "running", "applied", "failed"


@dataclass(frozen=True, eq=False)
class CheckedImages:
    """Completely checked images of the random sample that have a known target, with their log-odds.

    Attributes:
        index: Index of the images.
        paths: Paths of n images.
        logits: Stored log-odds of c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``; NaN is unknown.
    """

    index: Index
    paths: list[str]
    logits: Array
    targets: Array


@dataclass(frozen=True, eq=False)
class EvaluatedRecalibration:
    """Recalibration of the current log-odds, and the images of its evaluation.

    Attributes:
        images: Images of the evaluation.
        result: Scale, shift and metrics.
        n_images_of_fit: Number of checked images that were left out, because the recognizer was
            fitted on them.
    """

    images: CheckedImages
    result: Recalibration
    n_images_of_fit: int

    def as_dict(self) -> dict[str, Any]:
        """Return the values of the result as a dictionary for JSON, with notes."""
        notes = []
        if self.n_images_of_fit:
            notes.append(_describe_images_of_fit(self.n_images_of_fit))
        if self.images.index.drop_below is not None:
            notes.append(
                f"{describe_sparse_form(self.images.index.drop_below)} The metrics are approximate."
            )
        return self.result.as_dict() | {"notes": notes}


class RecalibrationService:
    """Recalibration of the index of a server.

    Args:
        session: Index of the server.
        log: File of the corrections.
        recognizer: Recognizer of the index.
    """

    def __init__(
        self, session: IndexSession, log: CorrectionLog, recognizer: RecognizerService
    ) -> None:
        self._session, self._log, self._recognizer = session, log, recognizer
        self._lock = Lock()
        self._state = IDLE
        self._reason: str | None = None
        self._evaluated: EvaluatedRecalibration | None = None
        self._worker: ImageWorker | None = None
        self._thread: Thread | None = None

    def status(self) -> dict[str, Any]:
        """Return the number of checked images, and the state of the last recalibration.

        Checked images without a known target do not count.

        Raises:
            DataError: If the file of the corrections is damaged.
        """
        index = self._session.current().index
        n_checked = len(_checked_images(index, self._log.history())[0])
        recognizer = self._recognizer.state(index)
        has_recognizer = recognizer["state"] != "missing"
        with self._lock:
            return {
                "n_checked": n_checked,
                "n_required": MIN_RECALIBRATION_IMAGES,
                "n_missing": max(0, MIN_RECALIBRATION_IMAGES - n_checked),
                "state": self._state,
                "reason": self._reason,
                "has_recognizer": has_recognizer,
                "reason_no_recognizer": None if has_recognizer else recognizer["reason"],
            }

    def read_checked_images(self) -> CheckedImages:
        """Return the checked images of the random sample.

        Only targets of complete checks of the sample are used. Other corrections of these images
        depend on the predictions, and would bias the recalibration.

        Raises:
            InputError: If fewer than 20 images are checked and have a known target.
            DataError: If the file of the corrections or the index is damaged.
        """
        index, history = self._session.current().index, self._log.history()
        images, targets = _checked_images(index, history)
        check_recalibration_images(len(images))
        paths = [image.path for image in images]
        return CheckedImages(index, paths, stored_logits(index, images), targets)

    def evaluate(self, images: CheckedImages, are_of_fit: list[bool]) -> EvaluatedRecalibration:
        """Fit and evaluate a scale and a shift, without a change of the index.

        Args:
            images: Checked images of the random sample.
            are_of_fit: Whether the recognizer was fitted on each image. These are left out.

        Raises:
            InputError: If a recalibration is running, or if fewer than 20 images remain.
        """
        self._check_not_running()
        kept = np.flatnonzero(~np.array(are_of_fit, dtype=bool))
        n_left_out = len(images.paths) - len(kept)
        try:
            check_recalibration_images(len(kept))
        except InputError as error:
            raise InputError(f"{error} {_describe_images_of_fit(n_left_out)}") from error
        images = replace(
            images,
            paths=[images.paths[row] for row in kept.tolist()],
            logits=images.logits[kept],
            targets=images.targets[kept],
        )
        result = evaluate_recalibration(images.logits, images.targets)
        evaluated = EvaluatedRecalibration(images, result, n_left_out)
        with self._lock:
            if self._state != RUNNING:
                self._state, self._reason, self._evaluated = IDLE, None, evaluated
        return evaluated

    def start_applying(self) -> None:
        """Start to save the recalibrated recognizer and to compute the log-odds of the index.

        Raises:
            InputError: If a recalibration is running, if nothing was evaluated, if the evaluation
                found no improvement, or if the recognizer of the index was changed since.
            MissingPart: If the recognizer of the index is missing.
        """
        index = self._session.current().index
        recognizer = self._recognizer.state(index)
        with self._lock:
            evaluated = self._evaluated
            if self._state == RUNNING:
                raise InputError(_RUNNING_MESSAGE)
            if evaluated is None:
                raise InputError(
                    "A recalibration must be evaluated before it is applied. Evaluate it first "
                    "(POST /api/recalibration)."
                )
            if not evaluated.result.is_improvement:
                raise InputError(evaluated.result.sentence)
            if index.model != evaluated.images.index.model:
                raise InputError(
                    "The recognizer of the index was changed after the evaluation. Evaluate the "
                    "recalibration again."
                )
            if recognizer["state"] == "missing":
                raise MissingPart(str(recognizer["reason"]))
            self._state, self._reason, self._evaluated = RUNNING, None, None
            self._worker = ImageWorker(TASKS_MODULE, seconds=APPLY_SECONDS, failure=FAILURE)
            self._thread = Thread(
                target=self._apply,
                args=(self._worker, evaluated, self._recognizer.source(index)),
                daemon=True,
            )
            self._thread.start()

    def close(self) -> None:
        """End the worker process of a recalibration.

        Afterwards, the index is unchanged or completely recalibrated.
        """
        with self._lock:
            worker, thread = self._worker, self._thread
        if worker is not None:
            worker.stop()
        if thread is not None:
            thread.join(5.0)

    def _apply(
        self, worker: ImageWorker, evaluated: EvaluatedRecalibration, source: dict[str, Any]
    ) -> None:
        result, images = evaluated.result, evaluated.images
        state, reason = FAILED, f"{FAILURE}; see the standard error of the server."
        try:
            worker.run(
                "apply_recalibration",
                {
                    "source": source,
                    "scale": result.scale,
                    "shift": result.shift,
                    "logits": result.cross_fitted_logits.tolist(),
                    "targets": images.targets.tolist(),
                    "paths": servable_paths(images.index, images.paths),
                },
            )
            state, reason = APPLIED, ""
        except SurelabelError as error:
            reason = " ".join(str(error).split())
        finally:  # also after a defect, so that the state is not "running" forever
            with self._lock:
                self._state, self._reason, self._worker = state, reason or None, None
            worker.close()

    def _check_not_running(self) -> None:
        with self._lock:
            if self._state == RUNNING:
                raise InputError(_RUNNING_MESSAGE)


_RUNNING_MESSAGE = "A recalibration is running. Wait until it has finished."


def servable_paths(index: Index, paths: list[str]) -> list[str]:
    """Return the real paths of the images whose files the server may read, in their order."""
    real_paths = []
    for path in paths:
        with suppress(DataError):
            real_paths.append(resolve_servable_file(path, index.root))
    return real_paths


def _checked_images(index: Index, history: CorrectionHistory) -> tuple[list[IndexedImage], Array]:
    """Return n completely checked images that have a known target, and all targets, ``(n, c)``."""
    images = list(find_images_by_path(index, history.complete_paths(index.names)).values())
    paths = [image.path for image in images]
    targets = target_array(history.sample_targets, paths, index.names)
    rows = np.flatnonzero(~np.isnan(targets).all(axis=1))
    return [images[row] for row in rows.tolist()], targets[rows]


def _describe_images_of_fit(n_images: int) -> str:
    """Return a sentence on images of the fit that are left out."""
    verb, pronoun = ("is", "it") if n_images == 1 else ("are", "them")
    return (
        f"{format_count(n_images, 'checked image')} {verb} left out, because the recognizer was "
        f"fitted on {pronoun}."
    )
