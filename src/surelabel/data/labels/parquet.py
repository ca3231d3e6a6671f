"""Read Parquet tables with labels, and with a column of image bytes or of image paths."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.data.labels.resolution.arrow_tables import label_table_in_memory, name_table_classes
from surelabel.data.labels.resolution.label_tables import LabelTable, labels_of_table
from surelabel.data.labels.resolution.table_options import (
    Separator,
    TableOptions,
    TargetReading,
)
from surelabel.errors import DataError
from surelabel.records import LabelledImages
from surelabel.storage.parquet_images import parquet_image_columns
from surelabel.storage.stored_images import open_parquet_table


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
    """Read annotated images from a Parquet table.

    The images are the bytes in the only image column, or the files that a column of paths names. A
    cell of an image column has a path such as ``table.parquet/image/17``. The columns of labels are
    read like the columns of a CSV file. A column can also contain lists of labels, or classes of
    Hugging Face ``datasets`` (``ClassLabel``).

    Args:
        path: Path of the Parquet table.
        images_root: Folder to which image paths are relative. If None, the folder of the table is
            used. The root has no effect on images that are bytes.
        names: Labels to return, in the order of the columns. If None, the labels of the table are
            returned.
        image_column: Column of the images. If None, the column is found by its type or its name.
        ignore: Columns without labels, such as ``split`` or ``width``.
        separator: Separator of the labels in one column of labels.
        minus_one: Meaning of the target -1, ``negative`` or ``unknown``.
        zero: Meaning of the target 0, ``negative`` or ``unknown``.

    Raises:
        DataError: If the file is no Parquet table, if there are several image columns, or for the
            reasons of a CSV file.
        InputError: If an option has an invalid value or names a column that does not exist.
    """
    path = Path(path)
    options = TableOptions(image_column, ignore, separator, minus_one, zero)
    table, root, options = _table_with_image_paths(path, images_root, options)
    entries = label_table_in_memory(table, options, images_root=root, name=str(path))
    return labels_of_table(entries, options, images_root=root, names=names)


def read_parquet_table(path: Path, options: TableOptions) -> LabelTable:
    """Return the images and the cells of a Parquet table, whose images need not exist.

    Args:
        path: Path of the Parquet table.
        options: Options of the table.

    Raises:
        DataError, InputError: For the reasons of :func:`read`.
    """
    table, root, options = _table_with_image_paths(path, None, options)
    return label_table_in_memory(table, options, images_root=root, name=str(path))


def _table_with_image_paths(
    path: Path, images_root: str | Path | None, options: TableOptions
) -> tuple[pa.Table, str | Path | None, TableOptions]:
    """Return a table with paths of images, the root of the paths, and the options to read it."""
    file = open_parquet_table(str(path))
    schema = file.schema_arrow
    columns = parquet_image_columns(schema)
    image = options.image_column
    if image is None and len(columns) > 1:
        raise DataError(
            f"{path} must contain only one image column; got {', '.join(map(repr, columns))}. "
            f"Select the column, for example with --image-column {columns[0]} (in Python "
            f"image_column={columns[0]!r})."
        )
    if image is None and columns:
        image = columns[0]
    has_bytes = image in columns
    others = [name for name in schema.names if name not in (*columns, *options.ignore)]
    table = _read_columns(file, [*others, *(n for n in options.ignore if n not in columns)])
    table = _name_classes_of_table(table, schema, others)
    if not has_bytes or image is None:
        return table, images_root, options
    paths = [f"{path.name}/{image}/{row}" for row in range(file.metadata.num_rows)]
    table = table.add_column(0, image, pa.array(paths, pa.string()))
    ignore = [name for name in options.ignore if name not in columns]
    given = {**vars(options), "image_column": image, "ignore": ignore}
    return table, path.parent, TableOptions(**given)


def _read_columns(file: pq.ParquetFile, names: Sequence[str]) -> pa.Table:
    try:
        return file.read(columns=list(names), use_threads=False).select(list(names))
    except (pa.ArrowException, OSError, KeyError) as error:
        reason = str(error).strip().splitlines()[0][:200].rstrip(".")
        raise DataError(
            f"The Parquet table cannot be read: {reason}. Copy the file again."
        ) from error


def _name_classes_of_table(table: pa.Table, schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Return a table with the names of the classes that Hugging Face ``datasets`` has recorded."""
    features = _recorded_features(schema)
    for name in names:
        feature = features.get(name)
        while isinstance(feature, dict) and isinstance(feature.get("feature"), dict):
            feature = feature["feature"]
        classes = feature.get("names") if isinstance(feature, dict) else None
        if isinstance(classes, list) and all(isinstance(text, str) for text in classes):
            column = name_table_classes(name, table.column(name), classes)
            table = table.set_column(table.column_names.index(name), name, column)
    return table


def _recorded_features(schema: pa.Schema) -> dict[str, Any]:
    try:
        recorded = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = recorded["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return features if isinstance(features, dict) else {}
