"""Convert a table, such as a CSV file or a DataFrame, to ``LabelledImages``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.labels.resolution.image_resolution import (
    resolve_label_columns,
    resolve_labelled_images,
)
from surelabel.data.labels.resolution.label_lists import is_list_type, read_label_lists
from surelabel.data.labels.resolution.repeated_rows import merge_repeated_rows
from surelabel.data.labels.resolution.row_selection_cells import row_selection_of_cells
from surelabel.data.labels.resolution.table_columns import LIST_COLUMNS, TableColumns
from surelabel.data.labels.resolution.table_options import (
    SEPARATORS,
    TableOptions,
    describe_ignore_option,
)
from surelabel.data.labels.resolution.target_cells import interpret_targets, targets_of_column
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.records import LabelledImages, RowSelection

_YES_NO = frozenset({"yes", "no", "y", "n", "t", "f"})  # case-folded texts that are no targets


@dataclass(frozen=True)
class LabelTable:
    """Columns of a label table, and the names of the table and its rows in messages.

    Attributes:
        source: Path of the file, or a name such as ``DataFrame``.
        images: Image path of each row, length n.
        columns: Roles of the columns.
        cells: Cells of the columns ``columns.labels``, each of length n: texts, numbers, Booleans,
            lists of texts, or nulls.
        place_of_row: Function that returns the place of a row in messages, such as ``line 2``.
        selection_cells: Cells of the columns ``columns.selection``, each of length n.
    """

    source: Path
    images: Sequence[str]
    columns: TableColumns
    cells: Sequence[pa.ChunkedArray]
    place_of_row: Callable[[int], str]
    selection_cells: Sequence[pa.ChunkedArray] = ()

    def place_of_target(self, row: int, column: int) -> str:
        """Return the place of a target in messages, such as ``line 2: the target of 'dog'``."""
        label = quote_of_file(self.columns.names[column])
        return f"{self.place_of_row(row)}: the target of {label}"


class InvalidCells(NamedTuple):
    """First cell of a column that is no target, and the number of such cells."""

    first: object
    n_cells: int


def labels_of_table(
    table: LabelTable,
    options: TableOptions,
    *,
    images_root: str | Path | None,
    names: Sequence[str] | None,
) -> LabelledImages:
    """Return the annotated images of a table; see :func:`surelabel.data.read_labels`.

    Raises:
        DataError: If a cell is invalid, if an image does not exist, if repeated rows contradict
            each other, or if a label is not in ``names``.
    """
    entries = label_entries_of_table(table, options, names=names)
    return resolve_labelled_images(
        table.source,
        entries.paths,
        entries.names,
        np.where(entries.known, entries.targets, np.nan),
        images_root=images_root,
        names=names,
        reading=entries.reading,
        row_selection=entries.row_selection,
    )


def label_entries_of_table(
    table: LabelTable, options: TableOptions, *, names: Sequence[str] | None = None
) -> LabelledImages:
    """Return the rows of a table with the image names of the table, whose files need not exist.

    Args:
        table: Columns of the table.
        options: Options of the table.
        names: Labels of a column of labels. If None, the labels that occur in the column are used.

    Raises:
        DataError: If a cell is invalid, if repeated rows contradict each other, or if a label of a
            column of labels is not in ``names``.
    """
    source = str(table.source)
    targets, invalid = _targets_of_table(table)
    list_column = _find_list_column(table, invalid)
    if list_column is None:
        _check_table_targets(table, invalid)
        interpret_targets(source, targets, options, table.place_of_target)
        images, targets, n_merged = merge_repeated_rows(
            source, table.images, targets, table.columns.names, table.place_of_row
        )
        columns = table.columns.names
        reading = _describe_target_columns(options)
    else:
        images, columns, targets, reading = _read_list_column(table, list_column, options, names)
        n_merged = len(table.images) - len(images)
    reading = _describe_table_columns(table.columns, reading, n_merged)
    selection = _row_selection_of_table(table)
    return LabelledImages(images, columns, targets, reading=reading, row_selection=selection)


def _row_selection_of_table(table: LabelTable) -> RowSelection | None:
    """Return how each distinct image was chosen, or None if the table has no such columns."""
    if not table.selection_cells:
        return None
    chosen_by, probability = (cells.to_pylist() for cells in table.selection_cells)
    return row_selection_of_cells(
        table.source, table.images, chosen_by, probability, table.place_of_row
    )


def _targets_of_table(table: LabelTable) -> tuple[Array, dict[int, InvalidCells]]:
    """Return the targets with -1, ``(n, c)``, and the invalid cells of each column that has any."""
    targets = np.empty((len(table.images), len(table.cells)), order="F")
    invalid = {}
    for number, cells in enumerate(table.cells):
        if is_list_type(cells.type):
            targets[:, number], invalid[number] = np.nan, InvalidCells(None, len(cells))
            continue
        targets[:, number], first, count = targets_of_column(cells)
        if count:
            invalid[number] = InvalidCells(first, count)
    return targets, invalid


def _find_list_column(table: LabelTable, invalid: dict[int, InvalidCells]) -> int | None:
    """Return the number of the column of labels among ``table.cells``, or None if there is none.

    It has lists, or a name in ``LIST_COLUMNS`` and either no targets or no other column beside it.

    Raises:
        DataError: If there is such a column, and other columns.
    """
    names = table.columns.names
    candidates = [
        number
        for number, name in enumerate(names)
        if is_list_type(table.cells[number].type)
        or (name.casefold() in LIST_COLUMNS and (number in invalid or len(names) == 1))
    ]
    if not candidates:
        return None
    others = [name for number, name in enumerate(names) if number != candidates[0]]
    if others:
        raise DataError(
            f"{table.source}: the column {names[candidates[0]]!r} contains lists of labels, so all "
            "columns other than the image column must be ignored; got "
            f"{quote_of_file(', '.join(others[:8]))}. Add {describe_ignore_option(others)}."
        )
    return candidates[0]


def _check_table_targets(table: LabelTable, invalid: dict[int, InvalidCells]) -> None:
    """Check that each cell is a target.

    Raises:
        DataError: If a cell of a label is invalid, or if a column does not contain targets.
    """
    if not invalid:
        return
    names, n_rows = table.columns.names, len(table.images)
    others = [number for number, cells in invalid.items() if 2 * cells.n_cells >= n_rows]
    wrong = [number for number in invalid if number not in others]
    yes_no = [
        number for number in others if str(invalid[number].first).strip().casefold() in _YES_NO
    ]
    number = (wrong or yes_no or others)[0]
    cell = invalid[number].first
    if number in yes_no:
        remedy = (
            "Targets are 1, 0, True or False: replace yes by 1 and no by 0, in pandas with "
            f"table[{names[number]!r}].map({{'yes': 1, 'no': 0}})."
        )
    elif len(names) == 1:
        remedy = (
            'Correct that line, or rename the column to "labels" if it contains lists of labels.'
        )
    elif number in others:
        remedy = (
            "To ignore columns without labels, add "
            f"{describe_ignore_option([names[n] for n in others])}."
        )
    else:
        remedy = "Correct that line."
    row = _first_row_of_cell(table.cells[number], cell)
    raise DataError(
        f"{table.source}, {table.place_of_target(row, number)} must be in [0, 1] (1 is positive), "
        f"True or False, or empty (unknown); got {quote_of_file(cell)}. {remedy}"
    )


def _first_row_of_cell(cells: pa.ChunkedArray, cell: object) -> int:
    plain = cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells
    return int(pc.index(plain, pa.scalar(cell, plain.type)).as_py())


def _read_list_column(
    table: LabelTable, number: int, options: TableOptions, names: Sequence[str] | None
) -> tuple[list[str], list[str], Array, str]:
    """Return the images, the labels, the targets ``(n, c)`` and how the column was read."""
    lists = read_label_lists(
        str(table.source), table.cells[number], options.separator, table.place_of_row
    )
    columns = resolve_label_columns(table.source, lists.labels, names)
    row_of = {image: row for row, image in enumerate(dict.fromkeys(table.images))}
    rows = np.fromiter((row_of[image] for image in table.images), np.intp, len(table.images))
    separator = f" separated by {SEPARATORS[lists.separator]!r}" if lists.separator else ""
    reading = f"labels{separator} in {table.columns.names[number]!r}"
    return list(row_of), columns, lists.targets(rows, columns), reading


def _describe_target_columns(options: TableOptions) -> str:
    readings = [
        f"{text} is {value}"
        for text, value in (("-1", options.minus_one), ("0", options.zero))
        if value is not None
    ]
    return "one column per label" + (f", where {' and '.join(readings)}" if readings else "")


def _describe_row_numbers(names: Sequence[str]) -> str:
    columns = []
    for name in names:
        if not name:
            columns.append("the first column, which has no name")
        else:
            columns.append("the index" if name.startswith("__") else f"column {name!r}")
    return f"skipped as row numbers: {', '.join(columns)}"


def _describe_table_columns(columns: TableColumns, reading: str, n_merged: int) -> str:
    """Return how the columns of a table were read, without a full stop."""
    parts = [f"images in {columns.header[columns.image]!r}", reading]
    if columns.selection:
        parts.append("selection of the rows in 'chosen_by'")
    if columns.ignored:
        parts.append(f"ignored: {', '.join(map(repr, columns.ignored))}")
    if columns.row_numbers:
        parts.append(_describe_row_numbers(columns.row_numbers))
    if n_merged:
        parts.append(f"{format_count(n_merged, 'repeated row')} merged")
    return "; ".join(parts)
