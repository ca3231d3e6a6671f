"""Read the rows of a CSV file of Open Images in columns: image-level labels or bounding boxes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from surelabel.counts import format_count
from surelabel.data.csv_rows import open_csv_rows
from surelabel.data.text_lists import read_first_line
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

LABEL_COLUMNS = ("ImageID", "LabelName", "Source", "Confidence")  # of image-level labels
BOX_COLUMNS = ("ImageID", "LabelName", "XMin")  # of boxes, whose source and confidence are not read
HUMAN_SOURCES = ("verification", "crowdsource-verification", "human")  # human is in V2
MACHINE_SOURCE = "machine"
NEGATIVE, POSITIVE, MACHINE, UNKNOWN = range(4)  # kinds of rows

_IMAGE_ID = re.compile(r"(?!\.)[^/\\:\x00-\x1f]+")

Codes = npt.NDArray[np.int32]
RowKinds = npt.NDArray[np.int8]


@dataclass(frozen=True)
class OpenImagesRows:
    """Rows of a CSV file.

    Attributes:
        path: Path of the file.
        is_box: Whether the rows are bounding boxes.
        images: The distinct image ids, in the order of their first rows.
        labels: The distinct label names, in the order of their first rows.
        image_codes: Index into ``images`` for each of m rows, ``(m,)``.
        label_codes: Index into ``labels`` for each row, ``(m,)``.
        kinds: ``NEGATIVE``, ``POSITIVE``, ``MACHINE`` or ``UNKNOWN`` for each row, ``(m,)``.
    """

    path: Path
    is_box: bool
    images: list[str]
    labels: list[str]
    image_codes: Codes
    label_codes: Codes
    kinds: RowKinds


def openimages_columns(path: Path) -> tuple[str, ...] | None:
    """Return the columns to read from a file of Open Images, or None for another file.

    Args:
        path: Path of a file.

    Returns:
        ``LABEL_COLUMNS``, ``BOX_COLUMNS``, or None.

    Raises:
        DataError: If the file cannot be read, or if its first line is not UTF-8 text.
    """
    header = {cell.strip(' "') for cell in read_first_line(path).split(",")}
    return next((c for c in (BOX_COLUMNS, LABEL_COLUMNS) if header.issuperset(c)), None)


def read_openimages_rows(path: Path, machine_labels: float | None) -> OpenImagesRows:
    """Return the rows of a file with image-level labels or boxes.

    Args:
        path: Path of the file, for which :func:`openimages_columns` is not None.
        machine_labels: Smallest confidence of a machine label of the kind ``MACHINE``. Other
            machine labels, or all if None, are of the kind ``UNKNOWN``.

    Raises:
        DataError: If the file is not CSV in UTF-8, or if a row is invalid. The message contains the
            number of the line.
    """
    columns = openimages_columns(path) or LABEL_COLUMNS
    cells = _read_openimages_cells(path, columns)
    images, labels = cells["ImageID"], cells["LabelName"]
    _check_openimages_cells(
        path,
        images,
        lambda text: _IMAGE_ID.fullmatch(text) is not None,
        "an ImageID, which is the name of an image file without folder and suffix",
    )
    _check_openimages_cells(path, labels, bool, "a LabelName, such as /m/0bt9lr")
    kinds = np.full(len(images), POSITIVE, np.int8)
    if columns == LABEL_COLUMNS:
        kinds = _kinds_of_labels(path, cells["Source"], cells["Confidence"], machine_labels)
    return OpenImagesRows(
        path,
        columns == BOX_COLUMNS,
        images.dictionary.to_pylist(),
        labels.dictionary.to_pylist(),
        images.indices.to_numpy(),
        labels.indices.to_numpy(),
        kinds,
    )


def line_of_openimages_row(path: Path, row: int) -> int:
    """Return the line number of a row in its file.

    Args:
        path: Path of the file.
        row: Index of the row; the header and empty lines are not counted.
    """
    with open_csv_rows(path) as rows:
        lines = (line for line, cells in rows if cells)
        return next(islice(lines, row + 1, None))


def _read_openimages_cells(path: Path, columns: tuple[str, ...]) -> dict[str, pa.DictionaryArray]:
    """Return the texts of each column, dictionary-encoded in the order of their first rows."""
    with open_csv_rows(path) as rows:
        header = [cell.strip() for cell in next(rows)[1]]
    if repeated := next((column for column in columns if header.count(column) > 1), None):
        raise DataError(
            f"{path}, line 1: each column must occur once; got {repeated} twice. Correct the "
            "header."
        )
    positions = [str(header.index(column)) for column in columns]
    kind = pa.dictionary(pa.int32(), pa.string())
    try:
        table = pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(
                column_names=[str(number) for number in range(len(header))],
                skip_rows_after_names=1,
            ),
            parse_options=pacsv.ParseOptions(newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(positions, kind), include_columns=positions
            ),
        ).unify_dictionaries()
    except (pa.ArrowInvalid, OSError) as error:
        raise _invalid_openimages_line(path, len(header)) or DataError(
            f"{path} must be a CSV file in UTF-8; got: {' '.join(str(error).split())[:300]}. "
            "Correct the file."
        ) from error
    empty = pa.array([], kind)
    return {
        column: chunks.combine_chunks() if (chunks := table[position]).num_chunks else empty
        for column, position in zip(columns, positions, strict=True)
    }


def _invalid_openimages_line(path: Path, n_columns: int) -> DataError | None:
    """Return an error for the first line with a wrong number of columns, or None without one."""
    with open_csv_rows(path) as rows:
        for line, row in rows:
            if row and len(row) != n_columns:
                return DataError(
                    f"{path}, line {line}: expected {format_count(n_columns, 'column')} as in the "
                    f"header; got {len(row)}: {quote_of_file(','.join(row))}. Correct that line."
                )
    return None


def _check_openimages_cells(
    path: Path, cells: pa.DictionaryArray, is_valid: Callable[[str], bool], expected: str
) -> None:
    """Check each distinct text of a column.

    Raises:
        DataError: If a text is invalid; the message contains the line of its first cell.
    """
    for code, text in enumerate(cells.dictionary.to_pylist()):
        if not is_valid(text):
            raise _invalid_openimages_cell(path, cells.indices.to_numpy() == code, expected, text)


def _invalid_openimages_cell(
    path: Path, is_invalid: npt.NDArray[np.bool_], expected: str, text: str
) -> DataError:
    line = line_of_openimages_row(path, int(np.flatnonzero(is_invalid)[0]))
    return DataError(
        f"{path}, line {line}: expected {expected}; got {quote_of_file(text)}. Correct that line."
    )


def _kinds_of_labels(
    path: Path,
    sources: pa.DictionaryArray,
    confidences: pa.DictionaryArray,
    machine_labels: float | None,
) -> RowKinds:
    """Return the kind of each image-level label.

    Raises:
        DataError: If a source is unknown, or if the confidence of a row is invalid.
    """
    known = (*HUMAN_SOURCES, MACHINE_SOURCE)
    _check_openimages_cells(path, sources, known.__contains__, f"a Source of {', '.join(known)}")
    is_source = [source == MACHINE_SOURCE for source in sources.dictionary.to_pylist()]
    is_machine = np.array(is_source, bool)[sources.indices.to_numpy()]
    texts = confidences.dictionary.to_pylist()
    codes = confidences.indices.to_numpy()
    values = np.array([_confidence_of_cell(text) for text in texts], np.float64)[codes]
    for is_invalid, expected in (
        (~is_machine & (values != 0) & (values != 1), "the Confidence 0 or 1 of a verified label"),
        (is_machine & ~((values >= 0) & (values <= 1)), "a Confidence in [0, 1]"),
    ):
        if is_invalid.any():
            text = texts[codes[np.flatnonzero(is_invalid)[0]]]
            raise _invalid_openimages_cell(path, is_invalid, expected, text)
    kinds = np.where(values == 1, POSITIVE, NEGATIVE).astype(np.int8)
    limit = np.inf if machine_labels is None else machine_labels
    kinds[is_machine] = np.where(values[is_machine] >= limit, MACHINE, UNKNOWN)
    return kinds


def _confidence_of_cell(text: str) -> float:
    """Return the number of a cell, or NaN if the text is no number."""
    try:
        return float(text) if "_" not in text else np.nan
    except ValueError:
        return np.nan
