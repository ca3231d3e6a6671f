"""CSV annotations: one column per label (``path,dog,cat``) or a label list (``path,label``)."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from surelabel.arrays import Array
from surelabel.data.csv_rows import numbered_csv_rows
from surelabel.data.labels.resolution.image_resolution import (
    resolve_label_columns,
    resolve_labelled_images,
    unresolved_image_path,
)
from surelabel.errors import DataError, InputError
from surelabel.file_readers import quote_of_file
from surelabel.files import atomic_file
from surelabel.records import LabelledImages

LONG_HEADERS = (["path", "label"], ["path", "labels"])
SEPARATOR = ";"

_HEADER = "the first line must be path,dog,cat,… (one column per label) or path,label"


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read annotated images from a CSV file in UTF-8, with or without BOM, quotes and CRLF.

    - Wide form, ``path,dog,cat``: the value 1 is a positive target, and 0 is a negative target. A
      number between 0 and 1 is a soft target, and an empty cell is an unknown target.
    - Long form, ``path,label``: the second cell contains labels separated by ``;``, or is empty if
      the image has no label. An image can have several lines. Labels that are in no line of an
      image are negative for this image.

    Args:
        path: Path of the CSV file.
        images_root: Folder to which image paths are relative. If None, the folder of the CSV file
            is used.
        names: Labels to return, in the order of the columns. If None, the labels of the wide form
            are returned in the order of the file, and the labels of the long form in sorted order.
            A label without a column in the wide form is unknown. A label that is in no line of the
            long form is negative.

    Raises:
        DataError: If a line is invalid, if an image does not exist, or if a label is not in
            ``names``. The message contains the number of an invalid line.
    """
    path = Path(path)
    header = _read_csv_header(path)
    if header in LONG_HEADERS:
        images, columns, targets = _read_long_csv(path, names)
    else:
        columns = header[1:]
        images, targets = _read_wide_csv(path, columns)
    return resolve_labelled_images(
        path, images, columns, targets, images_root=images_root, names=names
    )


def write(labelled: LabelledImages, path: str | Path) -> None:
    """Write annotated images as a CSV file in the wide form; unknown targets are empty cells.

    Args:
        labelled: Annotated images to write.
        path: Path of the CSV file. Paths of images inside the folder of this file are written
            relative to the folder.

    Raises:
        InputError: If a label is ``path``, or if the only label is ``label`` or ``labels``.
        DataError: If the file cannot be written.
    """
    path = Path(path)
    header = ["path", *labelled.names]
    if "path" in labelled.names or header in LONG_HEADERS:
        raise InputError(
            f"A CSV file cannot have the label columns {header[1:]}: path is the column of image "
            "paths, and path,label is the header of the long form. Write JSON lines (.jsonl) "
            "instead."
        )
    images = [unresolved_image_path(image, path.parent) for image in labelled.paths]
    columns = [
        pa.array(column, mask=~known)
        for column, known in zip(labelled.targets.T, labelled.known.T, strict=True)
    ]
    table = pa.Table.from_arrays([pa.array(images, pa.string()), *columns], names=header)
    with atomic_file(path) as temporary:
        pacsv.write_csv(table, temporary)


def _read_csv_header(path: Path) -> list[str]:
    header = [label.strip() for label in next(numbered_csv_rows(path), (0, []))[1]]
    if header[:1] != ["path"] or len(header) < 2:
        raise DataError(
            f"{path}: {_HEADER}; got {','.join(header)[:60]!r} on line 1. Correct the header."
        )
    labels = header[1:]
    if "path" in labels:
        raise DataError(
            f"{path}: 'path' must not be a label in a CSV file, where path is the column of the "
            "image paths. Rename the label, or use JSON lines (.jsonl)."
        )
    if "" in labels or len(set(labels)) < len(labels):
        invalid = next(label for label in labels if not label or labels.count(label) > 1)
        raise DataError(
            f"{path}: every column must have a unique label; got {quote_of_file(invalid)} on "
            f"line 1 {labels.count(invalid)} times. Correct the header."
        )
    return header


def _read_wide_csv(path: Path, columns: list[str]) -> tuple[list[str], Array]:
    """Read the wide form with pyarrow; if this fails, find the invalid line."""
    keys = [str(number) for number in range(len(columns) + 1)]
    try:
        table = pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(column_names=keys, skip_rows_after_names=1),
            parse_options=pacsv.ParseOptions(newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                column_types={k: pa.string() if k == "0" else pa.float32() for k in keys},
                null_values=[""],
                strings_can_be_null=False,
            ),
        )
        targets = _csv_table_to_targets(table)
    except (pa.ArrowInvalid, OSError) as error:
        raise _find_invalid_csv_line(path, columns) or DataError(
            f"{path} cannot be read: {str(error)[:300]}."
        ) from error
    images = table["0"].to_pylist()
    if targets is None or "" in images:
        raise _find_invalid_csv_line(path, columns) or DataError(
            f"{path}: every target must be in [0, 1] or empty; got other values. Correct them."
        )
    return images, targets


def _csv_table_to_targets(table: pa.Table) -> Array | None:
    """Return the columns as ``(n, c)``, or None if a value is outside [0, 1].

    If a cell is empty, the target is NaN.
    """
    targets = np.empty((table.num_rows, table.num_columns - 1), order="F")
    for number in range(1, table.num_columns):
        column = table[number]
        values = column.to_numpy()
        if np.count_nonzero((values >= 0) & (values <= 1)) < len(column) - column.null_count:
            return None
        targets[:, number - 1] = values
    return targets


def _find_invalid_csv_line(path: Path, columns: list[str]) -> DataError | None:
    """Return an error for the first invalid line of a wide file, or None if all are valid."""
    for line, row in numbered_csv_rows(path):
        if line == 1 or not row:
            continue
        if len(row) != len(columns) + 1:
            return DataError(
                f"{path}, line {line}: expected {len(columns) + 1} columns as in the header; "
                f"got {len(row)}. Correct that line."
            )
        if not row[0]:
            return DataError(
                f"{path}, line {line}: expected a path; got an empty cell. Add a path."
            )
        for label, value in zip(columns, row[1:], strict=True):
            if value and not _is_csv_target_value(value):
                return DataError(
                    f"{path}, line {line}: the target of {quote_of_file(label)} must be in [0, 1] "
                    f"(1 is positive) or empty (unknown); got {value[:40]!r}. Correct that line."
                )
    return None


def _is_csv_target_value(value: str) -> bool:
    try:
        number = float(value)
    except ValueError:
        return False
    return math.isfinite(number) and 0 <= number <= 1


def _read_long_csv(path: Path, names: Sequence[str] | None) -> tuple[list[str], list[str], Array]:
    labels_of: dict[str, set[str]] = {}
    for line, row in numbered_csv_rows(path):
        if line == 1 or not row:
            continue
        if len(row) != 2 or not row[0]:
            raise DataError(
                f"{path}, line {line}: expected 2 columns, a path and labels separated by "
                f"{SEPARATOR!r}; got {len(row)}: {','.join(row)[:60]!r}. Correct that line."
            )
        labels = {label.strip() for label in row[1].split(SEPARATOR)} - {""}
        if reserved := labels & {"path", "nan", "NaN"}:
            raise DataError(
                f"{path}, line {line}: {quote_of_file(reserved.pop())} must not be a label in a "
                "CSV file. If the image has no label, leave the cell empty; otherwise, use JSON "
                "lines (.jsonl)."
            )
        labels_of.setdefault(row[0], set()).update(labels)
    columns = resolve_label_columns(path, set().union(*labels_of.values()), names)
    column_of = {label: column for column, label in enumerate(columns)}
    targets = np.zeros((len(labels_of), len(columns)))
    for number, labels in enumerate(labels_of.values()):
        targets[number, [column_of[label] for label in labels]] = 1.0
    return list(labels_of), columns, targets
