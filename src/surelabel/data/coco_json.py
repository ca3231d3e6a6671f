"""Read JSON files of COCO, and find the entries that annotations refer to by id."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.arrays import ColumnIndices
from surelabel.counts import format_count
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file, read_json


def read_coco_json(path: Path) -> dict[str, Any]:
    """Return the content of a COCO file.

    Raises:
        DataError: If the file cannot be read, is not valid JSON, or is not one JSON object.
    """
    content = read_json(path, kind="a COCO file in JSON", remedy="Correct the file.")
    if not isinstance(content, dict):
        raise DataError(
            f"{path} must be a COCO file with one JSON object; got a value of type "
            f"{type(content).__name__}. Correct the file."
        )
    return content


def coco_values_by_id(
    path: Path, kind: str, entries: list[dict[str, Any]], key: str
) -> dict[Any, str]:
    """Return one field of each entry as text by the id of the entry, such as image file names.

    Args:
        path: Path of the file in error messages.
        kind: Kind of the entries in error messages, such as ``images``.
        entries: Entries with the field ``id`` and the field ``key``.
        key: Name of the field, such as ``file_name``.

    Raises:
        KeyError, TypeError: If an entry is not an object with both fields, or if an id is a list or
            an object.
        DataError: If an id is repeated.
    """
    values: dict[Any, str] = {}
    for entry in entries:
        if entry["id"] in values:
            raise DataError(
                f"The ids of {kind} in {path} must be unique; the id {quote_of_file(entry['id'])} "
                "is repeated. Remove the repeated entries, or change their ids."
            )
        values[entry["id"]] = str(entry[key])
    return values


def coco_category_names(path: Path, entries: list[dict[str, Any]]) -> dict[Any, str]:
    """Return the name of each category by its id.

    Args:
        path: Path of the file in error messages.
        entries: Categories of the file.

    Raises:
        KeyError, TypeError: For the reasons of :func:`coco_values_by_id`.
        DataError: If an id or a name is repeated.
    """
    categories = coco_values_by_id(path, "categories", entries, "name")
    names = list(categories.values())
    if len(set(names)) < len(names):
        repeated = next(name for number, name in enumerate(names) if name in names[:number])
        raise DataError(
            f"The category names in {path} must be unique; {quote_of_file(repeated)} is repeated. "
            "Rename the repeated categories."
        )
    return categories


def coco_annotation_indices(
    path: Path,
    images: Iterable[Any],
    categories: Iterable[Any],
    annotations: list[dict[str, Any]],
) -> ColumnIndices:
    """Return the row of the image and the column of the category of each annotation, ``(m, 2)``.

    Args:
        path: Path of the file in error messages.
        images: Ids of the images, in the order of the rows.
        categories: Ids of the categories, in the order of the columns.
        annotations: The m annotations of the file.

    Raises:
        KeyError, TypeError: If an annotation is not an object with ``image_id`` and
            ``category_id``, or if an id is a list or an object.
        DataError: If an annotation refers to an unknown id.
    """
    row = {image: number for number, image in enumerate(images)}
    column = {category: number for number, category in enumerate(categories)}
    pairs = [(a["image_id"], a["category_id"]) for a in annotations]
    unknown = [(i, c) for i, c in pairs if i not in row or c not in column]
    if unknown:
        raise DataError(
            f"Annotations in {path} must refer to images and categories of the file; got unknown "
            f"ids in {format_count(len(unknown), 'annotation')}, such as image_id "
            f"{quote_of_file(unknown[0][0])} with category_id {quote_of_file(unknown[0][1])}. "
            "Remove these annotations."
        )
    indices = np.array([(row[i], column[c]) for i, c in pairs], dtype=np.intp)
    return indices.reshape(-1, 2)
