"""Define the actor of Ray Data that predicts batches of images and writes the parts of a folder.

    FOLDER/cluster/
        attempt                  token of the process that started or resumed the run last
        manifest.parquet         row and path of each image that was not predicted yet
        started/NAME-N           empty file of a batch of N images, started and not written
        repeated/NAME-N-TOKEN    empty file of a batch of N images that may have been encoded again

A batch has the same name in each attempt. Therefore a batch that is predicted again, because its
actor was killed after writing the part, replaces its own part.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.cluster.tagger import PathBatch, Tagger
from surelabel.data import PredictionRun, write_prediction_part
from surelabel.errors import DataError, SurelabelError
from surelabel.files import atomic_file
from surelabel.records import SkippedImage

WORK_FOLDER = "cluster"  # of the manifest and the started batches, inside the folder of predictions
STARTED, REPEATED = "started", "repeated"  # folders in the work folder


@dataclass(frozen=True)
class BatchReport:
    """Result of a batch that an actor returns to the main process.

    Attributes:
        n_images: Number of images of the batch; 0 after an error.
        decode_seconds: Time spent decoding, in seconds.
        model_seconds: Time spent in the encoder, in seconds.
        rows: Rows of the images that could not be predicted.
        reasons: Path and reason of each image that could not be predicted.
        pid: Identifier of the process of the actor.
        error: Text of the error after which the run must end, or None. Ray does not preserve the
            cause of an error that an actor raises.
    """

    n_images: int
    decode_seconds: float
    model_seconds: float
    rows: Sequence[int]
    reasons: Sequence[tuple[str, str]]
    pid: int
    error: str | None = None

    def as_column(self) -> dict[str, npt.NDArray[Any]]:
        """Return the report as a batch of Ray Data with one row."""
        return {"report": np.array([json.dumps(asdict(self))])}

    @classmethod
    def from_text(cls, text: str) -> "BatchReport":
        """Return the report of a row of Ray Data."""
        return cls(**json.loads(text))


class PartWriter:
    """Actor that predicts batches of images and writes each batch as one part.

    Args:
        taggers: List with one reference of Ray to a :class:`Tagger`.
        folder: Folder of the predictions, to which each machine has access.
        run: Run of the folder.
        attempt: Token of this attempt to complete the run; see :func:`start_attempt`.
        one_by_one: Whether each image is predicted separately.
    """

    def __init__(
        self,
        taggers: Sequence[Any],
        folder: str,
        run: PredictionRun,
        attempt: str,
        *,
        one_by_one: bool,
    ):
        import ray

        self._attempt = attempt

        self._tagger: Tagger = ray.get(taggers[0])
        self._folder, self._run, self._one_by_one = Path(folder), run, one_by_one

    def __call__(self, batch: PathBatch) -> dict[str, npt.NDArray[Any]]:
        """Predict a batch, write its part, and return a report.

        If Surelabel raises an error, the report contains its message.

        Args:
            batch: Columns ``row``, int64, ``(n,)``, and ``path``, n paths of images.
        """
        try:
            return self._write_part(batch).as_column()
        except SurelabelError as error:
            return BatchReport(0, 0.0, 0.0, (), (), os.getpid(), str(error)).as_column()

    def _write_part(self, batch: PathBatch) -> BatchReport:
        """Predict a batch, and write its part, unless the part exists or no image was predicted.

        Raises:
            DataError: If the part cannot be written, if another process resumed the run, or if the
                tagging process cannot be started.
            InputError: If the tagging process cannot load the recognizer.
        """
        rows = np.asarray(batch["row"], dtype=np.int64)
        name = name_of_batch(rows)
        if (self._folder / f"part-{name}.parquet").exists():  # written by a killed actor
            return self._report(len(rows))
        started = _start_batch(self._folder, f"{name}-{len(rows)}")
        predict = self._tagger.predict_one_by_one if self._one_by_one else self._tagger.predict
        paths = [str(path) for path in batch["path"]]
        tagged = predict(paths)
        predictions = tagged.predictions
        if predictions is not None and len(predictions):
            self._check_attempt()
            write_prediction_part(
                self._folder, self._run, name, predictions, rows[tagged.positions]
            )
        with suppress(OSError):
            started.unlink()
        stats = None if predictions is None else predictions.encoding_stats
        seconds = (stats.decode_seconds, stats.model_seconds) if stats else (0.0, 0.0)
        is_failed = ~np.isin(np.arange(len(rows)), tagged.positions)
        return self._report(len(rows), *seconds, rows[is_failed].tolist(), tagged.skipped)

    def _check_attempt(self) -> None:
        """Check that no other process resumed the run meanwhile.

        Raises:
            DataError: If this actor belongs to an earlier attempt.
        """
        if _attempt_file(self._folder).read_text() != self._attempt:
            raise DataError(
                f"Only one process may write to {self._folder}; another process resumed the run. "
                "Wait until that process ends, or run the same command again."
            )

    def _report(
        self,
        n_images: int,
        decode_seconds: float = 0.0,
        model_seconds: float = 0.0,
        rows: Sequence[int] = (),
        skipped: Sequence[SkippedImage] = (),
    ) -> BatchReport:
        reasons = [(image.path, image.reason) for image in skipped]
        return BatchReport(n_images, decode_seconds, model_seconds, rows, reasons, os.getpid())


def name_of_batch(rows: npt.NDArray[np.int64]) -> str:
    """Return the name of the part of a batch, which is unique in the run.

    Args:
        rows: Rows of the n images of the batch, ``(n,)``, n >= 1.

    Example:
        >>> name_of_batch(np.array([7, 8, 9]))
        '000000000007-fe134fc8'
    """
    digest = hashlib.blake2b(rows.astype("<i8").tobytes(), digest_size=4).hexdigest()
    return f"{rows[0]:012}-{digest}"


def start_attempt(folder: Path) -> str:
    """Write and return a token, so that actors of a killed main process write no more parts.

    The batches that an earlier attempt had started and not written count as repeated.

    Args:
        folder: Folder of the predictions.

    Raises:
        DataError: If the folder cannot be written.
    """
    file, token = _attempt_file(folder), secrets.token_hex(8)
    with atomic_file(file) as temporary:
        temporary.write_text(token)
        for name in (STARTED, REPEATED):
            file.with_name(name).mkdir(exist_ok=True)
    for started in file.with_name(STARTED).iterdir():
        with suppress(OSError):  # written meanwhile by an actor of the earlier attempt
            started.rename(_repeated_file(folder, started.name))
    return token


def count_repeated_images(folder: Path) -> int:
    """Return an upper bound of the number of images encoded again in all attempts of a run.

    Args:
        folder: Folder of the predictions.
    """
    repeated = folder / WORK_FOLDER / REPEATED
    if not repeated.is_dir():
        return 0
    return sum(int(file.name.split("-")[2]) for file in repeated.iterdir())


def _start_batch(folder: Path, name: str) -> Path:
    """Create and return the file of a started batch; a batch that was started before is repeated.

    Raises:
        DataError: If the folder cannot be written.
    """
    started = folder / WORK_FOLDER / STARTED / name
    try:
        if started.exists():
            _repeated_file(folder, name).touch()
        started.touch()
    except OSError as error:
        raise DataError(
            f"{started} cannot be written: {error.strerror}. Check the disk space and the "
            "permissions, then run the same command again."
        ) from error
    return started


def _repeated_file(folder: Path, name: str) -> Path:
    return folder / WORK_FOLDER / REPEATED / f"{name}-{secrets.token_hex(4)}"


def _attempt_file(folder: Path) -> Path:
    return folder / WORK_FOLDER / "attempt"
