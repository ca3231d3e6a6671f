"""Assign roles to the columns of a label table: image paths, labels, row numbers, ignored."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from surelabel.counts import format_count
from surelabel.data.images import IMAGE_SUFFIXES
from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.row_selection_cells import find_selection_columns
from surelabel.data.labels.resolution.table_options import (
    TableOptions,
    describe_ignore_option,
    describe_table_option,
)
from surelabel.errors import DataError, InputError
from surelabel.file_readers import quote_of_file

MAIN_IMAGE_COLUMN = "path"
IMAGE_COLUMNS = frozenset(
    {"image", "images", "filename", "file_name", "file", "filepath", "file_path"}
    | {"image_path", "image_file", "image_filename", "image_name", "img", "img_path"}
)
LIST_COLUMNS = frozenset(
    {"label", "labels", "tag", "tags", "class", "classes", "category", "categories"}
    | {"keyword", "keywords"}
)

_ROW_NUMBER_COLUMN = re.compile(r"|Unnamed: \d+(\.\d+)*|__index_level_\d+__")  # as pandas writes


@dataclass(frozen=True)
class TableColumns:
    """Roles of the columns of a label table.

    Attributes:
        header: Name of each column, without surrounding spaces.
        image: Index of the column of image paths.
        labels: Indices of the columns of labels.
        row_numbers: Names of the columns of row numbers, which pandas writes. These columns are
            skipped, although no option ignores them.
        ignored: Names of the ignored columns.
        selection: Indices of the columns ``chosen_by`` and ``inclusion_probability``; empty if the
            table has neither.
    """

    header: Sequence[str]
    image: int
    labels: Sequence[int]
    row_numbers: Sequence[str] = ()
    ignored: Sequence[str] = ()
    selection: Sequence[int] = ()

    @property
    def names(self) -> list[str]:
        """Return the names of the columns of labels."""
        return [self.header[column] for column in self.labels]


def find_table_image_column(header: Sequence[str], options: TableOptions) -> int | None:
    """Return the index of the column of image paths, or None if no column has a known name.

    ``options.image_column`` has precedence over ``path``, and ``path`` over other names.

    Raises:
        InputError: If several columns have a known name, and none of these columns is called
            ``path``.
    """
    if options.image_column is not None:
        return header.index(options.image_column) if options.image_column in header else None
    if MAIN_IMAGE_COLUMN in header:
        return header.index(MAIN_IMAGE_COLUMN)
    names = [name.casefold() for name in header]
    columns = [
        column
        for column, name in enumerate(names)
        if name in IMAGE_COLUMNS | {MAIN_IMAGE_COLUMN} and header[column] not in options.ignore
    ]
    if len(columns) > 1:
        first, second = (header[column] for column in columns[:2])
        raise InputError(
            f"Exactly one column must contain image paths; got {first!r} and {second!r}. Add "
            f"{describe_table_option('image_column', first)}, and ignore columns without labels: "
            f"{describe_ignore_option([second])}."
        )
    return columns[0] if columns else None


def assign_table_columns(
    source: str,
    header: Sequence[str],
    options: TableOptions,
    *,
    first_row: Sequence[object],
    place: str,
) -> TableColumns:
    """Return the roles of the columns of a table.

    Args:
        source: Name of the table in messages.
        header: Name of each column.
        options: Options of the table.
        first_row: Cells of the first row, in which an error message searches for an image path.
        place: Place of the header in messages, such as `` on line 1``; empty for a DataFrame.

    Raises:
        DataError: If there is no column of image paths or no column of labels, or if a label is
            repeated, empty, or contains a control character.
        InputError: If an option names a column that does not exist, if the image column is ignored,
            or if several columns can contain the image paths.
    """
    for number, name in enumerate(header, start=1):
        if has_control_character(name):
            raise DataError(
                f"{source}: a column name must not contain a line break, a tab or another control "
                f"character; got {quote_of_file(name)}{place}, column {number}. Rename the column."
            )
    header = [name.strip() for name in header]
    if len(header) < 2:
        raise DataError(
            f"{source} must have the columns path,dog,cat,… (one column per label) or path,labels; "
            f"got {','.join(header)[:60]!r}{place}. Correct the header."
        )
    _check_table_option_columns(source, header, options)
    image = find_table_image_column(header, options)
    if image is None:
        raise _missing_image_column_error(source, header, first_row, place)
    row_numbers = _row_number_columns(header, image)
    read = [name if name not in options.ignore else "" for name in header]
    selection = find_selection_columns(source, read)
    labels = [
        column
        for column, name in enumerate(header)
        if column not in (image, *row_numbers, *selection) and name not in options.ignore
    ]
    _check_table_labels(source, [header[column] for column in labels], header[image], place)
    return TableColumns(
        header,
        image,
        labels,
        [header[column] for column in row_numbers if header[column] not in options.ignore],
        list(dict.fromkeys(options.ignore)),
        selection,
    )


def _row_number_columns(header: Sequence[str], image: int) -> list[int]:
    """Return the indices of the columns of row numbers, which pandas writes for its index.

    Columns without a name or called ``Unnamed: 0`` count only at the start of the table, before any
    other column.
    """
    columns: list[int] = []
    for column, name in enumerate(header):
        is_first = column == len(columns)
        if column == image or not _ROW_NUMBER_COLUMN.fullmatch(name):
            continue
        if is_first or name.startswith("__"):
            columns.append(column)
    return columns


def _check_table_option_columns(source: str, header: Sequence[str], options: TableOptions) -> None:
    given = [("image_column", options.image_column)] if options.image_column is not None else []
    for name, column in [*given, *(("ignore", column) for column in options.ignore)]:
        if column not in header:
            remedy = _column_suggestion(header, name, str(column))
            raise InputError(
                f"{name} must be a column of {source}; got {column!r}. {remedy} The columns are "
                f"{_quote_table_columns(header)}."
            )
    if options.image_column is not None and options.image_column in options.ignore:
        raise InputError(
            f"The image column must not be ignored; got {options.image_column!r} in image_column "
            "and in ignore. Remove this column from ignore."
        )


def _column_suggestion(header: Sequence[str], name: str, column: str) -> str:
    parts = [part.strip() for part in column.split(",")]
    if name == "ignore" and len(parts) > 1 and all(part in header for part in parts):
        return f"Repeat the option: {' '.join(f'--ignore {part}' for part in parts)}."
    similar = get_close_matches(column, header, n=1)
    return f'Did you mean "{similar[0]}"?' if similar else "Check the spelling."


def _missing_image_column_error(
    source: str, header: Sequence[str], first_row: Sequence[object], place: str
) -> DataError:
    images = [
        name
        for name, cell in zip(header, first_row, strict=False)  # a row can be too short
        if Path(str(cell)).suffix.lower() in IMAGE_SUFFIXES
    ]
    named = [name for name in header if not _ROW_NUMBER_COLUMN.fullmatch(name)]
    first = (images or named or header)[0]
    return DataError(
        f"{source} must contain a column of image paths, such as path, image or filename; got "
        f"{_quote_table_columns(header)}{place}. If {first!r} contains the image paths, add "
        f"{describe_table_option('image_column', first)}."
    )


def _check_table_labels(source: str, labels: Sequence[str], image: str, place: str) -> None:
    if not labels:
        raise DataError(
            f"{source} must contain one column per label (path,dog,cat) or one column of labels "
            f"(path,labels); got only the image column {image!r}{place}. Add a column of labels."
        )
    if image in labels:
        raise DataError(
            f"{source}: {image!r} must not be a label, because the column of image paths has this "
            "name. Rename the label, or use JSON lines (.jsonl)."
        )
    counts = Counter(labels)
    invalid = next((name for name, count in counts.items() if not name or count > 1), None)
    if invalid is not None:
        raise DataError(
            f"{source}: column names must be unique and not empty; got {quote_of_file(invalid)} "
            f"{format_count(counts[invalid], 'time')}{place}. Correct the header"
            + ("." if invalid else f", or add {describe_ignore_option([invalid])}.")
        )


def _quote_table_columns(header: Sequence[str]) -> str:
    """Return the names of at most eight columns in a message."""
    names = ", ".join(quote_of_file(name) for name in header[:8])
    return f"{names}, …" if len(header) > 8 else names
