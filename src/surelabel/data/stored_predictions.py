"""Open a Parquet file or a folder of predictions, and read predictions when they are used."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.data.prediction_folder_reading import (
    check_prediction_folder_is_complete,
    prediction_folder_blocks,
)
from surelabel.data.prediction_part_reading import find_part_rows, read_failed_images
from surelabel.data.prediction_runs import is_prediction_folder, read_prediction_run
from surelabel.data.prediction_tables import (
    PREDICTION_READ_ERRORS,
    check_read_predictions,
    first_line_of_read_error,
    predictions_of_table,
)
from surelabel.data.prediction_writing import LOGIT, PROBABILITY, SCORE
from surelabel.errors import DataError, InputError
from surelabel.file_readers import check_regular_file
from surelabel.mapped_arrays import mapped_zeros
from surelabel.records import Predictions, SkippedImage

ARRAYS_OF_PREDICTIONS = ("scores", "logits", "uncertainty", "shown", "features")
PATH = "path"  # column


@dataclass(frozen=True)
class StoredPredictions:
    """Predictions of n images and c labels in a Parquet file or a folder; see ``open_predictions``.

    Attributes:
        path: Path of the file or folder.
        names: Labels of the c classes, length c.
        calibration: Description of the calibration. If the logits are uncalibrated, the value is
            None.
        model: Fingerprint of the recognizer.
        skipped: Images that could not be read, each with the reason.
        n_images: Number n of images with predictions.
    """

    path: Path
    names: Sequence[str]
    calibration: str | None
    model: str
    skipped: Sequence[SkippedImage]
    n_images: int

    def __len__(self) -> int:
        return self.n_images

    @property
    def paths(self) -> list[str]:
        """Return the paths of the images, length n; only this column is read.

        Raises:
            DataError: If the file or a part is damaged.
        """
        paths = np.empty(len(self), dtype=object)
        for rows, table in self._tables([PATH]):
            paths[rows] = table[PATH].to_pylist()
        return list(paths)

    def blocks(self) -> Iterator[Predictions]:
        """Yield the predictions in blocks, in the order of the images.

        The blocks of a folder have at most 8,192 images. The blocks of a file are its row groups,
        which have at least 8,192 images except for the last one. Only one block is in memory and,
        for a folder, a few of its parts. Blocks have no skipped images.

        Raises:
            DataError: If the file or a part is damaged.
        """
        if is_prediction_folder(self.path):
            yield from prediction_folder_blocks(self.path)
            return
        columns = [name for name in _schema_names(self.path) if not name.startswith(PROBABILITY)]
        for _, table in self._tables(columns):
            with _read_errors_of_predictions(self.path):
                block = predictions_of_table(table)
                check_read_predictions(block)
            yield replace(block, skipped=())

    def scores(self, labels: Sequence[str] | None = None) -> npt.NDArray[np.float32]:
        """Return the scores of k labels, ``(n, k)``; only the columns of these labels are read.

        Args:
            labels: Labels, length k. If None, all labels are used.

        Raises:
            InputError: If a label is not in ``names``.
            DataError: If the file or a part is damaged.
        """
        return self._values(SCORE, labels)

    def logits(self, labels: Sequence[str] | None = None) -> npt.NDArray[np.float32]:
        """Return the log-odds of k labels, ``(n, k)``; only the columns of these labels are read.

        Args:
            labels: Labels, length k. If None, all labels are used.

        Raises:
            InputError: If a label is not in ``names``.
            DataError: If the predictions have no log-odds, or the file or a part is damaged.
        """
        return self._values(LOGIT, labels)

    def read(self) -> Predictions:
        """Return all predictions; large arrays are in temporary files and not in memory.

        Raises:
            DataError: If the file or a part is damaged, or if the disk is full.
        """
        joined: Predictions | None = None
        start = 0
        for block in self.blocks():
            if joined is None:
                joined = _empty_stored_predictions(block, len(self))
            rows = slice(start, start + len(block))
            for name in ARRAYS_OF_PREDICTIONS:
                if getattr(joined, name) is not None:
                    getattr(joined, name)[rows] = getattr(block, name)
            start = rows.stop
            for name in ("paths", "hashes"):
                if getattr(joined, name) is not None:
                    getattr(joined, name)[rows] = getattr(block, name)
        if joined is None:
            with _read_errors_of_predictions(self.path), _open_parquet(self.path) as file:
                joined = predictions_of_table(file.read())
                check_read_predictions(joined)
        return replace(joined, skipped=self.skipped)

    def _values(self, prefix: str, labels: Sequence[str] | None) -> npt.NDArray[np.float32]:
        """Return the columns of labels with a prefix, ``(n, k)``."""
        names = list(self.names if labels is None else labels)
        known = set(self.names)
        for name in names:
            if name not in known:
                near = get_close_matches(name, self.names, n=1)
                hint = f' Did you mean "{near[0]}"?' if near else " Check the spelling."
                raise InputError(f'Label "{name}" is not in the predictions of {self.path}.{hint}')
        values: npt.NDArray[np.float32] = mapped_zeros((len(self), len(names)), np.float32)
        for rows, table in self._tables([prefix + name for name in names]):
            with _read_errors_of_predictions(self.path):
                for column, name in enumerate(names):
                    values[rows, column] = table[prefix + name].to_numpy()
        return values

    def _tables(
        self, columns: Sequence[str]
    ) -> Iterator[tuple[slice | npt.NDArray[np.int64], pa.Table]]:
        """Yield some columns of each row group or part, with the rows of its images."""
        if is_prediction_folder(self.path):
            found = find_part_rows(self.path)
            for part, file in enumerate(found.files):
                rows = np.flatnonzero(found.parts == part)
                with _read_errors_of_predictions(file), _open_parquet(file) as parquet:
                    table = parquet.read(columns=columns).take(found.positions[rows])
                yield rows, table
            return
        with _read_errors_of_predictions(self.path), _open_parquet(self.path) as parquet:
            metadata = parquet.metadata
        start = 0
        for group in range(metadata.num_row_groups):
            with (
                _read_errors_of_predictions(self.path),
                _open_parquet(self.path, metadata=metadata) as parquet,
            ):
                table = parquet.read_row_group(group, columns=columns)
            yield slice(start, start + len(table)), table
            start += len(table)


def open_predictions(path: str | Path) -> StoredPredictions:
    """Open a Parquet file or a folder of predictions without reading scores and logits.

    Labels, calibration and the number of images are read immediately. Scores and logits are read
    when they are used, in blocks or for some labels.

    Args:
        path: Path of a ``.parquet`` file of :func:`write_predictions`, or of a folder of
            predictions.

    Raises:
        InputError: If the file has another suffix.
        DataError: If the file is missing or damaged, does not contain predictions, or if
            predictions of images are missing in the folder.

    Example:
        >>> import tempfile
        >>> import surelabel as sl
        >>> from surelabel.data import write_predictions
        >>> predictions = sl.Predictions(["a.jpg"], ["dog", "cat"], np.float32([[1, -2]]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_predictions(predictions, f"{folder}/tags.parquet")
        ...     stored = sl.open_predictions(f"{folder}/tags.parquet")
        ...     len(stored), stored.paths, stored.scores(["cat"]).tolist()
        (1, ['a.jpg'], [[-2.0]])
    """
    if is_prediction_folder(path):
        check_prediction_folder_is_complete(path)
        run, failed, found = (
            read_prediction_run(path),
            read_failed_images(path),
            find_part_rows(path),
        )
        is_failed = ~np.isin(failed.rows, found.rows)
        skipped = [
            image for image, failure in zip(failed.images, is_failed, strict=True) if failure
        ]
        return StoredPredictions(
            Path(path), run.labels, run.calibration, run.recognizer, tuple(skipped), len(found)
        )
    if Path(path).suffix.lower() != ".parquet":
        raise InputError(
            f"open_predictions needs a .parquet file or a folder of predictions; got {path}. Write "
            "the predictions with `surelabel tag IMAGES --out FILE.parquet`, or read the file with "
            "read_predictions."
        )
    with _read_errors_of_predictions(path), _open_parquet(path) as file:
        empty = predictions_of_table(file.schema_arrow.empty_table())
        check_read_predictions(empty)
        n_images = file.metadata.num_rows
    return StoredPredictions(
        Path(path), empty.names, empty.calibration, empty.model, empty.skipped, n_images
    )


@contextmanager
def _open_parquet(path: str | Path, **options: Any) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, whose checksums are compared when it is read."""
    check_regular_file(path)
    with (
        pa.OSFile(str(path)) as source,
        pq.ParquetFile(source, page_checksum_verification=True, **options) as file,
    ):
        yield file


@contextmanager
def _read_errors_of_predictions(path: str | Path) -> Iterator[None]:
    """Convert the errors of a damaged file to a DataError."""
    try:
        yield
    except PREDICTION_READ_ERRORS as error:
        raise DataError(
            f"{path} must contain predictions of surelabel; got: "
            f"{first_line_of_read_error(error)}. "
            f"Write the file again with `surelabel tag IMAGES --out {Path(path).name}`."
        ) from error


def _schema_names(path: Path) -> list[str]:
    """Return the columns of a Parquet file."""
    with _read_errors_of_predictions(path), _open_parquet(path) as file:
        names: list[str] = file.schema_arrow.names
        return names


def _empty_stored_predictions(like: Predictions, n_images: int) -> Predictions:
    """Return predictions of n images with the labels and kinds of a block, and arrays of zeros."""
    arrays: dict[str, Any] = {}
    for name in ARRAYS_OF_PREDICTIONS:
        array = getattr(like, name)
        if array is not None:
            arrays[name] = mapped_zeros((n_images, *array.shape[1:]), array.dtype)
    hashes = None if like.hashes is None else [""] * n_images
    return replace(like, paths=[""] * n_images, hashes=hashes, **arrays)
