"""Read CSV annotations: a column per label (``path,dog,cat``) or of labels (``path,labels``)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from surelabel.counts import format_count
from surelabel.data.csv_rows import DELIMITERS, open_csv_rows
from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.image_resolution import unresolved_image_path
from surelabel.data.labels.resolution.label_tables import LabelTable, labels_of_table
from surelabel.data.labels.resolution.row_selection_cells import SELECTION_COLUMNS
from surelabel.data.labels.resolution.table_columns import (
    LIST_COLUMNS,
    assign_table_columns,
    find_table_image_column,
)
from surelabel.data.labels.resolution.table_options import (
    Separator,
    TableOptions,
    TargetReading,
)
from surelabel.data.sample_targets import with_sample_targets
from surelabel.data.spreadsheet_cells import FORMULA_STARTS
from surelabel.errors import DataError, InputError
from surelabel.file_readers import quote_of_file
from surelabel.files import atomic_file, check_writable_file_paths
from surelabel.records import LabelledImages

_NULLS = ["", "nan", "NaN", "NA"]  # frequent texts of missing cells; others are read as texts


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    image_column: str | None = None,
    ignore: Sequence[str] = (),
    separator: Separator | None = None,
    minus_one: TargetReading | None = None,
    zero: TargetReading | None = None,
) -> LabelledImages:
    """Read annotated images from a CSV file in UTF-8, separated by commas, semicolons or tabs.

    The file can have a BOM, quotes and CRLF. Image paths are in the column ``path``, ``image`` or
    ``filename``. A first column without a name, which pandas writes, is skipped. An image name
    without suffix is completed with the suffix of the only image file of this name.

    - One column per label, ``path,dog,cat``: 1 or True is a positive target, and 0 or False is a
      negative target. A number between 0 and 1 is a soft target. The decimal separator is a point
      or a comma. An empty cell, NaN or NA is an unknown target. Rows of the same image must agree.
    - The columns ``chosen_by`` and ``inclusion_probability``, if there are any, state how each row
      was chosen for annotation; see :class:`RowSelection`.
    - One column of labels, ``path,labels``: a cell contains labels separated by ``,``, ``;`` or
      ``|``, or is empty if the image has no label. A label that contains the separator is written
      in double quotes inside the cell. The labels of all rows of an image are joined. Labels that
      are in no row of an image are negative for this image.

    Args:
        path: Path of the CSV file.
        images_root: Folder to which image paths are relative. If None, the folder of the CSV file
            is used.
        names: Labels to return, in the order of the columns. If None, label columns are returned in
            the order of the file, and the labels of one column in sorted order. The targets of a
            label without a column are unknown. A label that is in no cell of a single column of
            labels is negative.
        image_column: Column of the image paths. If None, the column is found by its name.
        ignore: Columns without labels, such as ``split`` or ``width``.
        separator: Separator of the labels in one column: ``comma``, ``semicolon``, ``pipe`` or
            ``space``. If None, the only one of ``,``, ``;`` and ``|`` in the column is used.
        minus_one: Meaning of the target -1, ``negative`` or ``unknown``. If None, a file with -1 is
            refused.
        zero: Meaning of the target 0, ``negative`` or ``unknown``. If None, 0 is negative; but a
            file with -1 and 0 is refused if ``minus_one`` is ``negative``.

    Raises:
        DataError: If a line is invalid, if rows of an image contradict each other, if an image does
            not exist, or if a label is not in ``names``. The message contains the number of an
            invalid line.
        InputError: If an option has an invalid value or names a column that does not exist.
    """
    path = Path(path)
    options = TableOptions(image_column, ignore, separator, minus_one, zero)
    table = read_csv_table(path, options)
    return labels_of_table(table, options, images_root=images_root, names=names)


def write(labelled: LabelledImages, path: str | Path) -> None:
    """Write annotated images as CSV, with one column per label; unknown targets are empty cells.

    If the images state how they were chosen, the columns ``chosen_by`` and
    ``inclusion_probability`` follow the column of paths, and random rows have only the targets that
    were annotated for the random sample.

    Args:
        labelled: Annotated images to write.
        path: Path of the CSV file. Paths of images inside the folder of this file are written
            relative to the folder.

    Raises:
        InputError: If a label is ``path``, ``chosen_by`` or ``inclusion_probability``, or contains
            a control character, or if the only label is the name of a column of labels, such as
            ``labels`` or ``tags``.
        DataError: If the file cannot be written.
    """
    path = Path(path)
    relative = [unresolved_image_path(image, path.parent) for image in labelled.paths]
    # with ./ the path is the same, and a spreadsheet program does not execute it as a formula
    images = [f"./{image}" if image.startswith(FORMULA_STARTS) else image for image in relative]
    write_label_entries(replace(labelled, paths=images), path)


def write_label_entries(labelled: LabelledImages, path: str | Path) -> None:
    """Write annotations with unchanged image names; see :func:`write`.

    Args:
        labelled: Annotated images, or rows of vectors or scores, with their names as paths.
        path: Path of the CSV file.

    Raises:
        InputError, DataError: For the reasons of :func:`write`.
    """
    check_writable_file_paths(labelled.paths)
    labelled = with_sample_targets(labelled)
    selection = labelled.row_selection
    header = ["path", *(SELECTION_COLUMNS if selection is not None else ()), *labelled.names]
    is_list = len(labelled.names) == 1 and labelled.names[0].casefold() in LIST_COLUMNS
    if "path" in labelled.names or is_list:
        raise InputError(
            "The labels of a CSV file must differ from the reserved column names, such as path or "
            f"labels; got {list(labelled.names)}. Write JSON lines (.jsonl) instead."
        )
    if reserved := [name for name in SELECTION_COLUMNS if name in labelled.names]:
        raise InputError(
            f"A label in a CSV file must not be {reserved[0]!r}, because this column name is "
            "reserved for the selection of rows. Rename the label, or write JSON lines (.jsonl)."
        )
    if invalid := next((name for name in labelled.names if has_control_character(name)), None):
        raise InputError(
            "A label must not contain a line break, a tab or another control character; got "
            f"{quote_of_file(invalid)}. Rename the label."
        )
    columns = [
        pa.array(column, mask=~known)
        for column, known in zip(labelled.targets.T, labelled.known.T, strict=True)
    ]
    if selection is not None:
        probability = selection.inclusion_probability
        columns = [
            pa.array([key or None for key in selection.chosen_by], pa.string()),
            pa.array(probability, mask=np.isnan(probability)),
            *columns,
        ]
    table = pa.Table.from_arrays(
        [pa.array(list(labelled.paths), pa.string()), *columns], names=header
    )
    with atomic_file(Path(path)) as temporary:
        pacsv.write_csv(table, temporary)


def read_csv_table(path: Path, options: TableOptions, *, limit: float = 1.0) -> LabelTable:
    """Return the images and the cells of a CSV file with one row per image.

    Args:
        path: Path of the CSV file.
        options: Options of the table.
        limit: Largest absolute value of cells that are read as numbers, >= 0. If the absolute value
            of a cell is larger, all cells are read as texts.

    Raises:
        DataError: If a line is invalid, or if there is no column of image paths or of labels. The
            message contains the number of an invalid line.
        InputError: If an option names a column that does not exist.
    """
    delimiter, header, first_row = _read_csv_header(path, options)
    columns = assign_table_columns(
        str(path), header, options, first_row=first_row, place=" on line 1"
    )
    texts = [str(number) for number in (columns.image, *columns.selection)]
    keys = [str(number) for number in columns.labels]
    try:
        table = _read_csv_cells(path, delimiter, len(header), texts, keys, columns.names, limit)
    except (pa.ArrowInvalid, OSError) as error:
        raise _find_invalid_csv_line(path, delimiter, len(header), columns.image) or DataError(
            f"{path} cannot be read: {str(error)[:300]}."
        ) from error
    images = table[texts[0]].to_pylist()
    if "" in images:
        raise _find_invalid_csv_line(path, delimiter, len(header), columns.image) or DataError(
            f"{path}: every row must contain an image path; got an empty cell. Add the path."
        )
    return LabelTable(
        path,
        images,
        columns,
        [table[key] for key in keys],
        lambda row: f"line {_line_of_csv_row(path, delimiter, row)}",
        [table[key] for key in texts[1:]],
    )


def _read_csv_cells(
    path: Path,
    delimiter: str,
    n_columns: int,
    texts: list[str],
    keys: list[str],
    labels: Sequence[str],
    largest: float,
) -> pa.Table:
    """Return the image paths and the cells of the labels as numbers if possible, else as texts.

    Args:
        path: Path of the CSV file.
        delimiter: Character between the cells.
        n_columns: Number of columns of the file; the columns of the result have their numbers.
        texts: Numbers of the columns that are read as texts, as texts.
        keys: Numbers of the columns of labels, as texts.
        labels: Names of the columns of labels.
        largest: Largest absolute value of cells that are read as numbers.
    """

    def read_cells(kind: pa.DataType) -> pa.Table:
        return pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(
                column_names=[str(number) for number in range(n_columns)], skip_rows_after_names=1
            ),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(texts, pa.string()) | dict.fromkeys(keys, kind),
                include_columns=[*texts, *keys],
                null_values=_NULLS if kind == pa.float64() else [],
                strings_can_be_null=False,
            ),
        )

    if not any(label.casefold() in LIST_COLUMNS for label in labels):
        with suppress(pa.ArrowInvalid):  # a cell is no number, or a line is invalid
            table = read_cells(pa.float64())
            limits = [pc.min_max(table[key]).as_py() for key in keys]
            if all(abs(limit[end] or 0) <= largest for limit in limits for end in ("min", "max")):
                return table
    return read_cells(pa.dictionary(pa.int32(), pa.string()))


def _read_csv_header(path: Path, options: TableOptions) -> tuple[str, list[str], list[str]]:
    """Return the delimiter of a file, the cells of its first line, and of its first row.

    The delimiter is the first one that gives a column of image paths; if none does, it is the one
    that gives most columns.
    """
    starts = {}
    for delimiter in DELIMITERS:
        with open_csv_rows(path, delimiter=delimiter) as numbered_rows:
            rows = (row for _, row in numbered_rows)
            header = next(rows, [])
            starts[delimiter] = delimiter, header, next(filter(None, rows), [])
        stripped = [name.strip() for name in header]
        if len(header) > 1 and find_table_image_column(stripped, options) is not None:
            return starts[delimiter]
    return max(starts.values(), key=lambda start: len(start[1]))


def _find_invalid_csv_line(
    path: Path, delimiter: str, n_columns: int, image: int
) -> DataError | None:
    """Return an error for the first line without a path or with another number of columns, if any.

    Args:
        path: Path of the CSV file.
        delimiter: Character between the cells.
        n_columns: Number of columns of the header.
        image: Index of the column of image paths.
    """
    with open_csv_rows(path, delimiter=delimiter) as rows:
        for line, row in rows:
            if row and len(row) != n_columns:
                return DataError(
                    f"{path}, line {line}: expected {format_count(n_columns, 'column')} as in the "
                    f"header; got {len(row)}: {quote_of_file(delimiter.join(row))}. Correct that "
                    f"line; put a cell that contains {delimiter!r} into double quotes."
                )
            if row and not row[image]:
                return DataError(
                    f"{path}, line {line}: expected an image path; got an empty cell. Add the path."
                )
    return None


def _line_of_csv_row(path: Path, delimiter: str, row: int) -> int:
    """Return the number of the first line of a row, without the header and empty lines."""
    with open_csv_rows(path, delimiter=delimiter) as rows:
        lines = (line for line, cells in rows if cells)
        return next(islice(lines, row + 1, None))
