"""Read label tables in memory: DataFrames, tables of Arrow, and datasets of Hugging Face."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
from PIL import Image, UnidentifiedImageError

from surelabel.counts import format_count
from surelabel.data.images import IMAGE_SUFFIXES
from surelabel.data.labels.resolution.label_lists import is_list_type
from surelabel.data.labels.resolution.label_tables import LabelTable
from surelabel.data.labels.resolution.table_columns import assign_table_columns
from surelabel.data.labels.resolution.table_options import TableOptions
from surelabel.data.labels.resolution.target_cells import target_of_cell
from surelabel.errors import DataError, InputError
from surelabel.file_readers import quote_of_file
from surelabel.files import atomic_new_file


@runtime_checkable
class ArrowStream(Protocol):
    """Table that can be converted to Arrow, such as a ``DataFrame`` of pandas or polars."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow."""


@runtime_checkable
class RowDataset(Protocol):
    """``Dataset`` of Hugging Face ``datasets``: one split with all rows."""

    features: Mapping[str, Any]
    column_names: list[str]

    def __len__(self) -> int:
        """Return the number of rows."""

    def with_format(self, type: str) -> Any:
        """Return the dataset with another type of rows."""

    def select_columns(self, column_names: list[str]) -> Any:
        """Return the dataset with some of its columns."""


@runtime_checkable
class NamedColumns(Protocol):
    """``DataFrame``, whose columns have names that can be repeated."""

    columns: Iterable[object]


TableInMemory = ArrowStream | RowDataset


def label_table_in_memory(
    source: TableInMemory,
    options: TableOptions,
    *,
    images_root: str | Path | None,
    name: str | None = None,
) -> LabelTable:
    """Return the columns of a DataFrame, of a table of Arrow, or of a dataset of Hugging Face.

    Args:
        source: Table with one row per image.
        options: Options of the table.
        images_root: Folder to which images that are stored inside the table are written. Their
            paths in the result are relative to this folder.
        name: Name of the table in messages. If None, the type of the table is used.

    Raises:
        DataError: If a column cannot be converted, or if an image path or an image is missing or
            invalid. Also for the reasons of ``assign_table_columns``.
        InputError: If an option names a column that does not exist, or if images are inside the
            table and ``images_root`` is None.
    """
    name = type(source).__name__ if name is None else name
    if isinstance(source, RowDataset):
        columns = assign_table_columns(name, source.column_names, options, first_row=(), place="")
        numbers = [columns.image, *columns.selection, *columns.labels]
        table = _dataset_columns(source, [source.column_names[number] for number in numbers])
    else:
        table = _arrow_table(name, source)
        first_row = [column[0].as_py() for column in table.columns] if len(table) else []
        columns = assign_table_columns(
            name, table.column_names, options, first_row=first_row, place=""
        )
        table = table.select([columns.image, *columns.selection, *columns.labels])
    image_cells, *other_cells = table.columns
    n_selection = len(columns.selection)
    images = _image_paths(name, image_cells, images_root)
    return LabelTable(
        Path(name),
        images,
        columns,
        other_cells[n_selection:],
        "row {}".format,
        other_cells[:n_selection],
    )


def _arrow_table(name: str, source: ArrowStream) -> pa.Table:
    try:
        return pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(source, NamedColumns) and (repeated := _repeated_texts(source.columns)):
            raise DataError(
                f"The column names of {name} must be unique; got the repeated names "
                f"{quote_of_file(', '.join(repeated))}. Rename or remove the repeated columns."
            ) from error
        reason = str(error).strip().splitlines()[0][:200]
        raise DataError(
            f"The columns of {name} must contain strings, numbers, Booleans or lists of strings; "
            f"got: {reason}. Convert the column, for example with astype(str), or remove it."
        ) from error


def _repeated_texts(values: Iterable[object]) -> list[str]:
    return [text for text, count in Counter(map(str, values)).items() if count > 1]


def _dataset_columns(source: RowDataset, names: list[str]) -> pa.Table:
    """Return columns of a dataset in the order of ``names``, with the names of classes."""
    table = source.select_columns(names).with_format("arrow")[:]
    for name in names:
        classes = _class_names(source.features[name])
        if classes is not None:
            column = name_table_classes(name, table.column(name), classes)
            table = table.set_column(table.column_names.index(name), name, column)
    return table.select(names)


def _class_names(feature: Any) -> list[str] | None:
    """Return the names of the classes of a feature of ``datasets``; None without classes."""
    from datasets import ClassLabel, LargeList, List

    if isinstance(feature, List | LargeList):
        feature = feature.feature
    return list(feature.names) if isinstance(feature, ClassLabel) else None


def name_table_classes(
    name: str, column: pa.ChunkedArray, classes: Sequence[str]
) -> pa.ChunkedArray:
    """Return the classes of each row as a list of names, or as a text if the classes are targets.

    Args:
        name: Name of the column, for messages.
        column: Numbers of classes, or lists of numbers of classes, length n.
        classes: Names of the classes.

    Raises:
        DataError: If a row has no class, or a number of no class.
    """
    is_list = is_list_type(column.type)
    rows = [row if is_list else [row] for row in column.to_pylist()]
    valid_numbers = range(len(classes))
    invalid = next(
        (row for row, numbers in enumerate(rows) if not _are_classes(numbers, valid_numbers)), None
    )
    if invalid is not None:
        raise DataError(
            f"Dataset, row {invalid}: expected class indices from 0 to {len(classes) - 1} in the "
            f"column {name!r}; got {rows[invalid]}. Remove the rows without classes, for example "
            "with dataset.filter."
        )
    named = [[classes[number] for number in numbers] for numbers in rows]
    if not is_list and all(target_of_cell(text) is not None for text in classes):
        return pa.chunked_array([pa.array([text for (text,) in named], pa.string())])
    return pa.chunked_array([pa.array(named, pa.list_(pa.string()))])


def _are_classes(numbers: Sequence[int | None] | None, valid_numbers: range) -> bool:
    return numbers is not None and all(
        isinstance(number, int) and number in valid_numbers for number in numbers
    )


def _image_paths(name: str, column: pa.ChunkedArray, images_root: str | Path | None) -> list[str]:
    """Return the path of each image; images inside the table are written to ``images_root``.

    Raises:
        DataError: If a cell is no path and no image.
        InputError: If there are images inside the table, and ``images_root`` is None.
    """
    if pa.types.is_struct(column.type):
        cells: Iterator[Any] = (cell for chunk in column.chunks for cell in chunk)
        return [
            _path_of_embedded_image(name, row, cell.as_py() or {}, images_root)
            for row, cell in enumerate(cells)
        ]
    try:
        paths: list[str] = column.cast(pa.string()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"The image column of {name} must contain paths, or images of Hugging Face datasets; "
            f"got values of type {column.type}. Give another image_column."
        ) from error
    if missing := [row for row, path in enumerate(paths) if not path]:
        raise DataError(
            f"{name}, row {missing[0]}: expected an image path; got an empty cell. Remove the "
            f"{format_count(len(missing), 'row')} without a path."
        )
    return paths


def _path_of_embedded_image(
    name: str, row: int, image: Mapping[str, Any], images_root: str | Path | None
) -> str:
    """Return the path of an image of ``datasets``, which has a path, or the bytes of a file.

    The bytes are written to a file in ``images_root`` whose name has the row and a digest of the
    content. A file that exists is not written again. The path of this file is relative to
    ``images_root``; any other path is absolute.
    """
    content, path = image.get("bytes"), image.get("path")
    if content is None:
        if not path:
            raise DataError(f"{name}, row {row}: expected an image; got none. Remove this row.")
        return str(Path(path).absolute())
    if images_root is None:
        raise InputError(
            f"The images inside the table {name} must be written to files. Give "
            'images_root="FOLDER", the folder for these files.'
        )
    suffix = Path(path or "").suffix.lower()
    if suffix not in IMAGE_SUFFIXES:
        suffix = _suffix_of_image(name, row, content)
    file = f"{row:06d}-{sha256(content).hexdigest()[:16]}{suffix}"
    target = Path(images_root) / file
    if not target.exists():
        with atomic_new_file(target) as temporary:
            temporary.write_bytes(content)
    return file


def _suffix_of_image(name: str, row: int, content: bytes) -> str:
    try:
        with Image.open(BytesIO(content)) as image:
            return f".{(image.format or 'png').lower()}"
    except (UnidentifiedImageError, OSError) as error:
        raise DataError(
            f"{name}, row {row}: expected the bytes of an image file; got {len(content)} bytes of "
            "another format. Remove this row."
        ) from error
