"""Write the predictions of one run to a folder, in parts of several processes or machines.

    OUT/
        run.json                 recognizer, labels, calibration, options and images of the run
        part-NAME.parquet        predictions of some images, with the column `row` and, if they are
                                 known, `hash` (content of the image file) and `vector`
        failed.parquet           row, path and reason of images that could not be predicted;
        failed-NAME.parquet      there can be several such files

The row of an image is its position, from 0, in the list of all images of the run. Every file is
written once and completely. Therefore the files of several folders of one run can be copied into
one folder.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.data.prediction_runs import PredictionRun
from surelabel.data.prediction_writing import (
    PARQUET_METADATA_KEY,
    check_finite_predictions,
    prediction_parquet_table,
    prediction_table_metadata,
)
from surelabel.errors import InputError
from surelabel.files import atomic_file, escape_non_utf8_file_path
from surelabel.records import Predictions, SkippedImage

ROW_COLUMN, HASH_COLUMN, VECTOR_COLUMN = "row", "hash", "vector"
RUN_KEY = "run"  # of the metadata of each Parquet file

_PART_NAME = re.compile(r"[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*")


@dataclass(frozen=True)
class FailedImages:
    """Images that could not be predicted.

    Attributes:
        rows: Row of each image in the list of all images, ``(n,)``.
        images: Path and reason of each image, length n.
    """

    rows: npt.NDArray[np.int64]
    images: Sequence[SkippedImage]

    def __len__(self) -> int:
        return len(self.images)


def write_prediction_part(
    folder: str | Path,
    run: PredictionRun,
    name: str,
    predictions: Predictions,
    rows: npt.NDArray[np.int64],
) -> Path:
    """Write the predictions of some images as one part, and return the path of the file.

    The file gets its name when it is complete. The images are stored in the order of their rows,
    with content hashes and image vectors if available. Skipped images are not stored; see
    :func:`write_failed_images`.

    Args:
        folder: Folder of the predictions.
        run: Description of the run.
        name: Name of the part, without ``part-`` and suffix. The name must be unique in the run.
        predictions: Predictions of n images, n >= 1.
        rows: Row of each image in the list of all images, ``(n,)``, each once.

    Raises:
        InputError: If the rows do not match the predictions or the run, or if the name is invalid.
            Also if recognizer, labels or calibration differ from those of the run, or if a score,
            logit or uncertainty is invalid.
        DataError: If the file cannot be written.
    """
    _check_part_rows(rows, len(predictions), run)
    values = {
        "recognizer": (predictions.model, run.recognizer),
        "labels": (tuple(predictions.names), run.labels),
        "calibration": (predictions.calibration, run.calibration),
    }
    if differences := [name for name, (actual, expected) in values.items() if actual != expected]:
        raise InputError(
            "The recognizer, labels and calibration of a part must be the same as in its run; got "
            f"different {' and '.join(differences)}. Predict with the recognizer of the run."
        )
    table = prediction_parquet_table(check_finite_predictions(predictions))
    table = table.append_column(ROW_COLUMN, pa.array(rows, pa.int64()))
    if predictions.hashes is not None:
        table = table.append_column(HASH_COLUMN, pa.array(predictions.hashes, pa.string()))
    if predictions.features is not None:
        vectors = np.ascontiguousarray(predictions.features, dtype=np.float16)
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        table = table.append_column(VECTOR_COLUMN, column)
    metadata = prediction_table_metadata(predictions, ()) | {RUN_KEY: run.digest}
    file = Path(folder, f"part-{_check_part_name(name)}.parquet")
    _write_folder_table(file, table.take(np.argsort(rows, kind="stable")), metadata)
    return file


def write_failed_images(
    folder: str | Path, run: PredictionRun, failed: FailedImages, *, name: str | None = None
) -> Path:
    """Write the images that could not be predicted, and return the path of the file.

    Args:
        folder: Folder of the predictions.
        run: Description of the run.
        failed: Images with rows and reasons.
        name: Name of the file, without ``failed-`` and suffix. If None, the file is
            ``failed.parquet``. An existing file of this name is replaced.

    Raises:
        InputError: If a row is not a row of the run, or is given twice, or if the name is invalid.
        DataError: If the file cannot be written.
    """
    _check_part_rows(failed.rows, len(failed), run)
    table = pa.table(
        {
            ROW_COLUMN: pa.array(failed.rows, pa.int64()),
            "path": pa.array([escape_non_utf8_file_path(i.path) for i in failed.images], "string"),
            "reason": pa.array([i.reason for i in failed.images], "string"),
        }
    )
    suffix = "" if name is None else f"-{_check_part_name(name)}"
    file = Path(folder, f"failed{suffix}.parquet")
    table = table.take(np.argsort(failed.rows, kind="stable"))
    _write_folder_table(file, table, {RUN_KEY: run.digest})
    return file


def _write_folder_table(file: Path, table: pa.Table, metadata: Mapping[str, Any]) -> None:
    table = table.replace_schema_metadata({PARQUET_METADATA_KEY: json.dumps(metadata)})
    with atomic_file(file) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def _check_part_name(name: str) -> str:
    if not _PART_NAME.fullmatch(name):
        raise InputError(
            "The name of a part must consist of letters, digits, '-', '_' and single dots between "
            f"them; got {name!r}. Use another name."
        )
    return name


def _check_part_rows(rows: npt.NDArray[np.int64], n_rows: int, run: PredictionRun) -> None:
    """Check that there is one row of the run for each image.

    Raises:
        InputError: If the number, the type or a value of the rows is invalid, or a row is repeated.
    """
    is_valid = rows.shape == (n_rows,) and rows.dtype == np.int64
    if not is_valid or len(np.unique(rows)) < n_rows or ((rows < 0) | (rows >= run.n_images)).any():
        raise InputError(
            f"rows must be {n_rows} distinct integers (int64) in [0, {run.n_images}); got "
            f"{rows.dtype} of shape {rows.shape}. Give the row of each image in the list of all "
            "images."
        )
