"""Labels as CSV: a column a label (``path,dog,cat``), or a list of labels (``path,label``)."""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from surelabel.data.labels.resolving import labelled_images, path_beside, vocabulary
from surelabel.errors import DataError, InputError
from surelabel.files import new_file
from surelabel.records import Array, LabelledImages

LONG_HEADERS = (["path", "label"], ["path", "labels"])
SEPARATOR = ";"

_HEADER = "the first line must be path,dog,cat,… (a column a label) or path,label"


def read(
    path: str | Path,
    *,
    pictures_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read labels from a CSV file in UTF-8, with or without BOM, quotes and CRLF.

    Wide, ``path,dog,cat``: 1 present, 0 absent, a number between for what is unsure, empty
    for unknown. Long, ``path,label``: labels separated by ``;``, none for a picture without
    any; a picture may have several lines; labels that it does not mention are absent.

    Args:
        path: The CSV file.
        pictures_root: Where relative paths start; the folder of the file when None.
        names: Labels wanted, in this order. None takes those of the file: columns in
            their order, or all that are mentioned, sorted. A name without a column is
            unknown; in the long form, a name that is never mentioned is absent.

    Raises:
        DataError: with the number of the line that is wrong, the pictures that do not
            exist, or the labels that are not in ``names``.
    """
    path = Path(path)
    header = _checked_header(path)
    if header in LONG_HEADERS:
        pictures, columns, targets = _long(path, names)
    else:
        columns = header[1:]
        pictures, targets = _wide(path, columns)
    return labelled_images(
        path, pictures, columns, targets, pictures_root=pictures_root, names=names
    )


def write(labelled: LabelledImages, path: str | Path) -> None:
    """Write labels in the wide form; what is unknown stays empty.

    Args:
        labelled: Pictures and labels.
        path: The CSV file; paths below its folder are written relative to it.

    Raises:
        InputError: a label is called ``path``, or the only one ``label``.
        DataError: the place cannot be written.
    """
    path = Path(path)
    header = ["path", *labelled.names]
    if "path" in labelled.names or header in LONG_HEADERS:
        raise InputError(
            f"a CSV of labels cannot have the label columns {header[1:]}: path is the column of "
            "the files, and path,label is the other form. Write JSON lines (.jsonl) instead."
        )
    pictures = [path_beside(picture, path.parent) for picture in labelled.paths]
    columns = [
        pa.array(column, mask=~known)
        for column, known in zip(labelled.targets.T, labelled.known.T, strict=True)
    ]
    table = pa.Table.from_arrays([pa.array(pictures, pa.string()), *columns], names=header)
    with new_file(path) as temporary:
        pacsv.write_csv(table, temporary)


def _checked_header(path: Path) -> list[str]:
    header = [label.strip() for label in next(_rows(path), (0, []))[1]]
    if header[:1] != ["path"] or len(header) < 2:
        raise DataError(f"{path}: {_HEADER}. Got {','.join(header)[:60]!r} on line 1.")
    labels = header[1:]
    if "path" in labels:
        raise DataError(
            f"{path}: a label cannot be called 'path' in a CSV: that column holds the files. "
            "Rename the label, or use JSON lines (.jsonl)."
        )
    if "" in labels or len(set(labels)) < len(labels):
        fault = next(label for label in labels if not label or labels.count(label) > 1)
        raise DataError(
            f"{path}: every column needs a label of its own. Got {fault!r} on line 1 "
            f"{labels.count(fault)} times. Correct the header."
        )
    return header


def _wide(path: Path, columns: list[str]) -> tuple[list[str], Array]:
    """Read it fast; when that fails, read it again slowly to say which line is wrong."""
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
        targets = _targets(table)
    except (pa.ArrowInvalid, OSError) as error:
        raise _fault(path, columns) or DataError(f"{path} cannot be read: {error}.") from error
    pictures = table["0"].to_pylist()
    if targets is None or "" in pictures:
        raise _fault(path, columns) or DataError(f"{path}: a value is outside [0, 1].")
    return pictures, targets


def _targets(table: pa.Table) -> Array | None:
    """Columns as ``(n, c)`` with NaN where empty; None when a value is no target."""
    targets = np.empty((table.num_rows, table.num_columns - 1), order="F")
    for number in range(1, table.num_columns):
        column = table[number]
        values = column.to_numpy()
        if np.count_nonzero((values >= 0) & (values <= 1)) < len(column) - column.null_count:
            return None
        targets[:, number - 1] = values
    return targets


def _fault(path: Path, columns: list[str]) -> DataError | None:
    """The first line of a wide file that is wrong, in words."""
    for line, row in _rows(path):
        if line == 1 or not row:
            continue
        if len(row) != len(columns) + 1:
            return DataError(
                f"{path}, line {line}: expected {len(columns) + 1} columns as in the header, "
                f"got {len(row)}. Correct that line."
            )
        if not row[0]:
            return DataError(f"{path}, line {line}: expected a path, got nothing. Add it.")
        for label, value in zip(columns, row[1:], strict=True):
            if value and not _is_target(value):
                return DataError(
                    f"{path}, line {line}: {label!r} must be 1 (present), 0 (absent) or empty "
                    f"(unknown). Got {value[:40]!r}. Correct that line."
                )
    return None


def _is_target(value: str) -> bool:
    try:
        number = float(value)
    except ValueError:
        return False
    return math.isfinite(number) and 0 <= number <= 1


def _long(path: Path, names: Sequence[str] | None) -> tuple[list[str], list[str], Array]:
    mentioned: dict[str, set[str]] = {}
    for line, row in _rows(path):
        if line == 1 or not row:
            continue
        if len(row) != 2 or not row[0]:
            raise DataError(
                f"{path}, line {line}: expected 2 columns, a path and its labels separated by "
                f"{SEPARATOR!r}, got {len(row)}: {','.join(row)[:60]!r}. Correct that line."
            )
        labels = {label.strip() for label in row[1].split(SEPARATOR)} - {""}
        if bad := labels & {"path", "nan", "NaN"}:
            raise DataError(
                f"{path}, line {line}: a label cannot be called {bad.pop()!r} in a CSV. Leave the "
                "place empty where there is no label; use JSON lines (.jsonl) for such a name."
            )
        mentioned.setdefault(row[0], set()).update(labels)
    columns = vocabulary(path, set().union(*mentioned.values()), names)
    place = {label: column for column, label in enumerate(columns)}
    targets = np.zeros((len(mentioned), len(columns)))
    for number, labels in enumerate(mentioned.values()):
        targets[number, [place[label] for label in labels]] = 1.0
    return list(mentioned), columns, targets


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file, each with the number of its first line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader, line = csv.reader(file, strict=True), 1
            for row in reader:
                yield line, row
                line = reader.line_num + 1
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"{path} must be a CSV file in UTF-8, with commas. Got: {error}. Save it as such."
        ) from error
