"""Read the parts of a folder of predictions: rows of the images, failed images, predictions.

The rows of all images take 16 bytes per image in memory.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.counts import format_count
from surelabel.data.prediction_part_writing import (
    HASH_COLUMN,
    ROW_COLUMN,
    RUN_KEY,
    VECTOR_COLUMN,
    FailedImages,
)
from surelabel.data.prediction_runs import PredictionRun, read_prediction_run
from surelabel.data.prediction_tables import (
    PREDICTION_READ_ERRORS,
    check_read_predictions,
    first_line_of_read_error,
    predictions_of_table,
)
from surelabel.data.prediction_writing import PARQUET_METADATA_KEY
from surelabel.errors import DataError
from surelabel.file_readers import check_regular_file, parse_json
from surelabel.records import Predictions, SkippedImage


@dataclass(frozen=True)
class PartRows:
    """Rows of all predicted images of a folder, and the parts that contain them.

    Attributes:
        files: Paths of the parts.
        rows: Rows of the n predicted images in the list of all images, ascending, ``(n,)``.
        parts: Index in ``files`` of the part of each predicted image, ``(n,)``.
        positions: Position of each predicted image in its part, ``(n,)``.
    """

    files: Sequence[Path]
    rows: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.rows)


def find_part_rows(folder: str | Path) -> PartRows:
    """Return the rows of all predicted images of a folder of predictions.

    Args:
        folder: Folder of the predictions.

    Raises:
        DataError: If a part is damaged or belongs to another run, or if the same image is in two
            parts.
    """
    run, files = read_prediction_run(folder), _folder_files(folder, "part-")
    rows_of_parts = [_read_rows(file, run) for file in files]
    sizes = [len(rows) for rows in rows_of_parts]
    rows = np.concatenate([np.empty(0, np.int64), *rows_of_parts])
    parts = np.repeat(np.arange(len(files), dtype=np.int32), sizes)
    positions = np.concatenate(
        [np.empty(0, np.int32), *(np.arange(size, dtype=np.int32) for size in sizes)]
    )
    order = np.argsort(rows, kind="stable")
    found = PartRows(files, rows[order], parts[order], positions[order])
    repeated = np.flatnonzero(found.rows[1:] == found.rows[:-1])
    if len(repeated):
        first = int(repeated[0])
        names = [files[part].name for part in found.parts[first : first + 2]]
        raise DataError(
            f"{folder} must contain each image once; {format_count(len(repeated), 'image')} "
            f"occur in two parts, such as row {found.rows[first]} in {names[0]} and {names[1]}. "
            "Delete one of these files."
        )
    return found


def finished_prediction_rows(folder: str | Path) -> npt.NDArray[np.int64]:
    """Return the rows of all images that are predicted or failed, in ascending order.

    Args:
        folder: Folder of the predictions.

    Raises:
        DataError: For the reasons of :func:`find_part_rows` and :func:`read_failed_images`.
    """
    rows = find_part_rows(folder).rows
    return np.union1d(rows, read_failed_images(folder).rows)


def read_failed_images(folder: str | Path) -> FailedImages:
    """Return the failed images of all files of a folder, in the order of their rows.

    An image that occurs several times is returned once. A failed image can also be in a part, if it
    was predicted later.

    Args:
        folder: Folder of the predictions.

    Raises:
        DataError: If a file of failed images is damaged or belongs to another run.
    """
    run = read_prediction_run(folder)
    reasons: dict[int, SkippedImage] = {}
    for file in _folder_files(folder, "failed"):
        try:
            table = _read_folder_table(file, run)
            rows = _check_rows(table, run).tolist()
            texts = [table[column].to_pylist() for column in ("path", "reason")]
            if not all(isinstance(text, str) for column in texts for text in column):
                raise ValueError("each path and reason must be text")
        except PREDICTION_READ_ERRORS as error:
            raise _damaged_part_error(file, error) from error
        for row, path, reason in zip(rows, *texts, strict=True):
            reasons.setdefault(row, SkippedImage(path, reason))
    rows_in_order = sorted(reasons)
    return FailedImages(
        np.array(rows_in_order, np.int64), tuple(reasons[row] for row in rows_in_order)
    )


def prediction_folder_paths(folder: str | Path) -> Iterator[str]:
    """Yield the paths of the predicted images of a folder, part by part, in no particular order.

    Args:
        folder: Folder of the predictions.

    Raises:
        DataError: If a part is damaged or belongs to another run.
    """
    run = read_prediction_run(folder)
    for file in _folder_files(folder, "part-"):
        try:
            paths = _read_folder_table(file, run, ["path"])["path"].to_pylist()
        except PREDICTION_READ_ERRORS as error:
            raise _damaged_part_error(file, error) from error
        yield from paths


def read_prediction_part(
    file: str | Path, run: PredictionRun
) -> tuple[npt.NDArray[np.int64], Predictions]:
    """Return the rows ``(n,)`` and the predictions of the n images of one part.

    Args:
        file: Path of the part.
        run: Run of the folder.

    Raises:
        DataError: If the part is damaged or belongs to another run.
    """
    try:
        table = _read_folder_table(file, run)
        rows = _check_rows(table, run)
        predictions = predictions_of_table(table)
        check_read_predictions(predictions)
        if HASH_COLUMN in table.column_names:
            predictions = replace(predictions, hashes=table[HASH_COLUMN].to_pylist())
        if VECTOR_COLUMN in table.column_names:
            predictions = replace(predictions, features=_read_vectors(table))
    except PREDICTION_READ_ERRORS as error:
        raise _damaged_part_error(file, error) from error
    return rows, predictions


def _folder_files(folder: str | Path, prefix: str) -> list[Path]:
    """Return the Parquet files of a folder whose names start with a prefix, in sorted order."""
    names = sorted(os.listdir(folder))
    return [Path(folder, n) for n in names if n.startswith(prefix) and n.endswith(".parquet")]


def _read_folder_table(
    file: str | Path, run: PredictionRun, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return a table of a Parquet file of a folder.

    Raises:
        DataError: If the file belongs to another run. A damaged file raises one of
            ``PREDICTION_READ_ERRORS``.
    """
    check_regular_file(file)
    with pa.OSFile(str(file)) as source:
        table = pq.read_table(source, columns=columns, page_checksum_verification=True)
    metadata = parse_json((table.schema.metadata or {})[PARQUET_METADATA_KEY])
    if metadata[RUN_KEY] != run.digest:
        raise DataError(
            f"{file} must belong to the run in {Path(file).parent / 'run.json'}; got a file of "
            "another run. Move this file to the folder of its run."
        )
    return table


def _read_rows(file: Path, run: PredictionRun) -> npt.NDArray[np.int64]:
    """Return the rows of the images of a part; only their column is read."""
    try:
        return _check_rows(_read_folder_table(file, run, [ROW_COLUMN]), run)
    except PREDICTION_READ_ERRORS as error:
        raise _damaged_part_error(file, error) from error


def _read_vectors(table: pa.Table) -> npt.NDArray[np.float16]:
    """Return the image vectors of a part, ``(n, d)``.

    Raises:
        ValueError: If the column has no lists of equal length of 16-bit numbers, or empty cells.
    """
    column = table[VECTOR_COLUMN]
    is_list = pa.types.is_fixed_size_list(column.type)
    if not is_list or column.type.value_type != pa.float16() or column.null_count:
        raise ValueError("vectors must be lists of 16-bit numbers")
    values = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.asarray(values, np.float16).reshape(len(column), column.type.list_size)


def _check_rows(table: pa.Table, run: PredictionRun) -> npt.NDArray[np.int64]:
    """Return the column of the rows.

    Raises:
        ValueError: If a row is not an integer, out of range, or not above the previous row.
    """
    column = table[ROW_COLUMN]
    if column.type != pa.int64() or column.null_count:
        raise ValueError("row numbers must be integers")
    rows: npt.NDArray[np.int64] = column.to_numpy()
    if len(rows) and not (rows[0] >= 0 and rows[-1] < run.n_images and (np.diff(rows) > 0).all()):
        raise ValueError(f"row numbers must be strictly increasing and in [0, {run.n_images})")
    return rows


def _damaged_part_error(file: str | Path, error: Exception) -> DataError:
    if isinstance(error, DataError):
        return error
    return DataError(
        f"{file} is damaged: {first_line_of_read_error(error)}. Copy this file again, or delete it "
        "and run the same command again."
    )
