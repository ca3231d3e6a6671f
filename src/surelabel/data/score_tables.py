"""Read scores that another program computed, from CSV, Parquet or .npz files or a DataFrame."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from surelabel.array_files import read_arrays
from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.csv_rows import DELIMITERS, open_csv_rows
from surelabel.data.labels.csv import read_csv_table
from surelabel.data.labels.resolution.arrow_tables import (
    ArrowStream,
    TableInMemory,
    label_table_in_memory,
)
from surelabel.data.labels.resolution.label_files import read_label_entries
from surelabel.data.labels.resolution.label_tables import LabelTable
from surelabel.data.labels.resolution.table_options import TableOptions, describe_ignore_option
from surelabel.data.labels.resolution.target_cells import MISSING_CELLS
from surelabel.data.sample_targets import with_sample_targets
from surelabel.errors import DataError, InputError
from surelabel.file_readers import check_regular_file, quote_of_file
from surelabel.records import LabelledImages, LabelledScores, RowSelection

ARCHIVE_KEYS = ("scores", "names", "paths")
_TEXT_TYPES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)


def read_scores(
    source: str | Path | ArrowStream,
    *,
    kind: str,
    labels: str | Path | TableInMemory | LabelledImages | None = None,
    image_column: str | None = None,
    ignore: Sequence[str] = (),
) -> LabelledScores:
    """Read scores of images that another program computed, with one column per label.

    Scores and labels are joined by the names of the images, in any order. The image files need not
    exist.

    Args:
        source: Path of a file, or a DataFrame of pandas or polars:

            - CSV (``.csv``, ``.tsv``) or Parquet: a column ``path``, ``image`` or ``filename`` with
              the names of the images, and one column per label;
            - an ``.npz`` file with the arrays ``scores`` ``(n, k)``, or ``(n, t, k)`` for t views
              of each image, ``names`` ``(k,)`` and ``paths`` ``(n,)``.
        kind: Meaning of the scores, which is never inferred: ``logits`` (log-odds),
            ``probabilities`` in [0, 1], or ``cosines`` in [-1, 1].
        labels: Annotations of the images, as for ``read_labels``, or the result of ``read_labels``.
            If None, the scores have no labels. Scores of images without annotations are left out.
        image_column: Column of the image names. If None, the column is found by its name.
        ignore: Columns without scores, such as ``split``.

    Returns:
        Scores in the order of ``source``, with the labels of the annotations.

    Raises:
        DataError: If the file is missing, damaged or of another format, or if a cell is no number.
        InputError: If the kind is unknown, if a score is missing or out of the range of its kind,
            if an image occurs twice, or if no image has labels.

    Example:
        >>> import pyarrow
        >>> table = pyarrow.table({"image": ["a.jpg", "b.jpg"], "dog": [0.5, 0.9]})
        >>> read_scores(table, kind="probabilities").paths
        ['a.jpg', 'b.jpg']
    """
    options = TableOptions(image_column, ignore)
    scores = _read_score_source(source, kind, options)
    if labels is None:
        return scores
    labelled = labels if isinstance(labels, LabelledImages) else read_label_entries(labels)
    return join_scores_and_labels(scores, labelled, source=str(source) if is_path(source) else "")


def join_scores_and_labels(
    scores: LabelledScores, labelled: LabelledImages, *, source: str = ""
) -> LabelledScores:
    """Return the scores of the annotated images, with their labels, joined by the image names.

    The images are in the order of ``scores``. A warning states the number of annotated images
    without scores.

    Args:
        scores: Scores of images.
        labelled: Annotated images.
        source: Name of the scores in messages.

    Raises:
        InputError: If no image has scores and labels, or if an annotated image occurs twice.
    """
    row_of = {_comparable_path(path): row for row, path in enumerate(labelled.paths)}
    if len(row_of) < len(labelled.paths):
        raise InputError(
            "Image names must be unique in the labels, so that scores can be joined; got "
            f"{len(labelled.paths) - len(row_of)} repeated image names. Keep one row for each "
            "image."
        )
    matches = [row_of.get(_comparable_path(path)) for path in scores.paths]
    rows = [row for row, match in enumerate(matches) if match is not None]
    label_rows = [match for match in matches if match is not None]
    if not rows:
        raise _no_common_image_error(scores, labelled, source)
    if n_missing := len(labelled) - len(rows):
        scored = set(label_rows)
        first = [path for row, path in enumerate(labelled.paths) if row not in scored][:3]
        warnings.warn(
            f"Annotated images without scores in {source or 'the table'} are left out: "
            f"{n_missing:,} of {format_count(len(labelled), 'image')}, such as "
            f"{', '.join(map(repr, first))}. Add the scores of these images.",
            stacklevel=2,
        )
    joined = labelled.take(label_rows)
    with_labels = scores.take(rows).with_labels(joined.names, joined.targets, joined.known)
    return with_labels.with_row_selection(joined.row_selection)


def add_labels_to_scores(
    scores: LabelledScores, labelled: LabelledImages, *, source: str = ""
) -> LabelledScores:
    """Return all scores with the labels of annotated images; targets of other images are unknown.

    Args:
        scores: Scores of images.
        labelled: Annotated images.
        source: Name of the scores in messages.

    Raises:
        InputError: If no image has scores and labels, or if an annotated image occurs twice.

    Example:
        >>> scores = LabelledScores(np.eye(2), "logits", columns=["x", "y"], paths=["a", "b"])
        >>> labelled = LabelledImages(["b"], ["dog"], [[1]])
        >>> add_labels_to_scores(scores, labelled).known.tolist()
        [[False], [True]]
    """
    joined = with_sample_targets(join_scores_and_labels(scores, labelled, source=source))
    row_of = {path: row for row, path in enumerate(scores.paths)}
    rows = [row_of[path] for path in joined.paths]
    targets = np.full((len(scores), len(joined.names)), np.nan)
    targets[rows] = np.where(joined.known, joined.targets, np.nan)
    selection = joined.row_selection
    if selection is not None:
        keys, probability = [""] * len(scores), np.full(len(scores), np.nan)
        probability[rows] = selection.inclusion_probability
        for row, key in zip(rows, selection.chosen_by, strict=True):
            keys[row] = key
        selection = RowSelection(keys, probability)
    return scores.with_labels(joined.names, targets).with_row_selection(selection)


def score_table_columns(path: str | Path) -> list[str]:
    """Return the names of the columns of a CSV or Parquet file, or an empty list for another file.

    Args:
        path: Path of a file, which may not exist.
    """
    suffix = Path(path).suffix.lower()
    try:
        if suffix == ".parquet":
            return [str(name) for name in pq.read_schema(path).names]
        if suffix in (".csv", ".tsv"):
            headers = []
            for delimiter in DELIMITERS:
                with open_csv_rows(Path(path), delimiter=delimiter) as rows:
                    headers.append(next((row for _, row in rows), []))
            return [name.strip() for name in max(headers, key=len)]
    except (DataError, OSError, pa.ArrowException):
        pass  # reading the file raises the error
    return []


def is_path(source: object) -> bool:
    """Return True if a source is the path of a file."""
    return isinstance(source, str | os.PathLike)


def _read_score_source(
    source: str | Path | ArrowStream, kind: str, options: TableOptions
) -> LabelledScores:
    if not is_path(source):
        assert not isinstance(source, str | Path)
        return _scores_of_table(label_table_in_memory(source, options, images_root=None), kind)
    path = Path(str(source))
    check_regular_file(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _read_score_archive(path, kind)
    if suffix == ".parquet":
        return _read_score_parquet(path, kind, options)
    if suffix in (".csv", ".tsv"):
        return _scores_of_table(read_csv_table(path, options, limit=float("inf")), kind)
    raise DataError(
        f"Scores must be in a .csv, .tsv, .parquet or .npz file; got {path}. Convert the file, for "
        "example to CSV in UTF-8."
    )


def _read_score_parquet(path: Path, kind: str, options: TableOptions) -> LabelledScores:
    try:
        with pa.OSFile(str(path)) as file:
            content = pq.read_table(file, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} must be a Parquet file; got: {str(error).splitlines()[0][:200]}. Write the "
            "file again."
        ) from error
    table = label_table_in_memory(content, options, images_root=None)
    return _scores_of_table(
        LabelTable(path, table.images, table.columns, table.cells, table.place_of_row), kind
    )


def _read_score_archive(path: Path, kind: str) -> LabelledScores:
    arrays = read_arrays(
        path,
        ARCHIVE_KEYS,
        kind="an archive of scores",
        remedy="Save plain arrays: numpy.savez(FILE, scores=…, names=…, paths=…).",
    )
    names, paths = (_texts_of_array(arrays[key]) for key in ("names", "paths"))
    try:
        return LabelledScores(arrays["scores"], kind, columns=names, paths=paths)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _texts_of_array(array: np.ndarray[Any, Any]) -> list[str]:
    flat = np.atleast_1d(array).ravel().tolist()
    return [
        text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text) for text in flat
    ]


def _scores_of_table(table: LabelTable, kind: str) -> LabelledScores:
    """Return the scores of a table, one column per label.

    Raises:
        DataError: If there are no rows, or if a cell is no number.
        InputError: If a score is missing or out of the range of its kind.
    """
    if not len(table.images):
        raise DataError(
            f"{table.source} must contain at least one row of scores; got none. Give another file."
        )
    values = np.empty((len(table.images), len(table.cells)))
    for number, cells in enumerate(table.cells):
        values[:, number] = _scores_of_column(table, number, cells)
    try:
        return LabelledScores(values, kind, columns=table.columns.names, paths=table.images)
    except InputError as error:
        raise InputError(f"{table.source}: {error}") from error


def _scores_of_column(table: LabelTable, number: int, cells: pa.ChunkedArray) -> Array:
    """Return the numbers of a column, ``(n,)``; a missing cell is NaN.

    Raises:
        DataError: If a cell is no number.
    """
    if not any(is_type(cells.type) for is_type in _TEXT_TYPES):
        try:
            plain: Array = pc.cast(cells, pa.float64()).to_numpy()
            return plain
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass  # the error below names the first cell
    values = np.empty(len(cells))
    number_of: dict[object, float | None] = {}
    for row, cell in enumerate(cells.to_pylist()):
        if cell not in number_of:
            number_of[cell] = _number_of_cell(cell)
        value = number_of[cell]
        if value is None:
            column = table.columns.names[number]
            raise DataError(
                f"{table.source}, {table.place_of_row(row)}: the score of {quote_of_file(column)} "
                f"must be a number; got {quote_of_file(cell)}. Correct the cell; for a column "
                f"without scores, add {describe_ignore_option([column])}."
            )
        values[row] = value
    return values


def _number_of_cell(cell: object) -> float | None:
    """Return the number of a cell, NaN if it is missing, or None if it is no number."""
    if cell is None or (isinstance(cell, str) and cell.strip().casefold() in MISSING_CELLS):
        return float("nan")
    text = str(cell).strip().replace(",", ".") if isinstance(cell, str) else cell
    try:
        return float(text)  # type: ignore[arg-type]  # other values raise TypeError
    except (TypeError, ValueError):
        return None


def _comparable_path(path: str) -> str:
    """Return an image name as it is compared with others, without ``./`` and Windows separators."""
    return os.path.normpath(path.strip().replace("\\", "/"))


def _no_common_image_error(
    scores: LabelledScores, labelled: LabelledImages, source: str
) -> InputError:
    stems = [
        {os.path.splitext(os.path.basename(_comparable_path(path)))[0] for path in paths}
        for paths in (scores.paths, labelled.paths)
    ]
    n_equal = len(stems[0] & stems[1])
    remedy = "Write the same image names in both files."
    if n_equal:
        remedy = (
            "The image names match without folders and suffixes for "
            f"{format_count(n_equal, 'image')}. Write folders and suffixes in the same way in both "
            "files."
        )
    return InputError(
        "Scores and labels must have image names in common; got "
        f"{scores.paths[0]!r}, … in the scores{f' of {source}' if source else ''}, and "
        f"{labelled.paths[0]!r}, … in the labels. {remedy}"
    )
