"""Read COCO instances: a JSON file with ``images``, ``annotations`` and ``categories``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.counts import format_count
from surelabel.data.coco_json import coco_values_by_id, read_coco_json
from surelabel.data.labels.resolution.image_resolution import resolve_labelled_images
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.records import LabelledImages


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read annotated images; a category with at least one instance in an image is a positive label.

    Crowd annotations are treated as instances. Categories without an instance in an image are
    negative, since COCO is annotated exhaustively.

    Args:
        path: Path of the JSON file.
        images_root: Folder to which the paths in ``file_name`` are relative. If None, the folder of
            the JSON file is used.
        names: Labels to return, in the order of the columns. If None, the categories are returned
            in the order of the file. If a label is not a category, its targets are unknown.

    Raises:
        DataError: If the file is not a COCO file, if an id or a category name is repeated, or if an
            annotation refers to an unknown id. Also if an image does not exist, or if a category is
            not in ``names``.
    """
    path = Path(path)
    content = read_coco_json(path)
    try:
        categories = coco_values_by_id(path, "categories", content["categories"], "name")
        images = coco_values_by_id(path, "images", content["images"], "file_name")
        pairs = [(a["image_id"], a["category_id"]) for a in content["annotations"]]
        indices = _coco_annotation_indices(path, images, categories, pairs)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path} must be a COCO file with images (id, file_name), categories (id, name) and "
            f"annotations (image_id, category_id); got a missing or invalid entry: {error}. "
            "Correct the file."
        ) from error
    columns = list(categories.values())
    if len(set(columns)) < len(columns):
        repeated = next(name for number, name in enumerate(columns) if name in columns[:number])
        raise DataError(
            f"The category names in {path} must be unique; {quote_of_file(repeated)} is repeated. "
            "Rename the repeated categories."
        )
    targets = np.zeros((len(images), len(columns)))
    targets[indices[:, 0], indices[:, 1]] = 1.0
    return resolve_labelled_images(
        path, list(images.values()), columns, targets, images_root=images_root, names=names
    )


def _coco_annotation_indices(
    path: Path, images: dict[Any, str], categories: dict[Any, str], pairs: list[tuple[Any, Any]]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return the row and column of each annotation, ``(len(pairs), 2)``."""
    row = {image: number for number, image in enumerate(images)}
    column = {category: number for number, category in enumerate(categories)}
    unknown = [(i, c) for i, c in pairs if i not in row or c not in column]
    if unknown:
        raise DataError(
            f"Annotations in {path} must refer to images and categories of the file; got unknown "
            f"ids in {format_count(len(unknown), 'annotation')}, such as image_id "
            f"{quote_of_file(unknown[0][0])} with category_id {quote_of_file(unknown[0][1])}. "
            "Remove these annotations."
        )
    indices = np.array([(row[i], column[c]) for i, c in pairs], dtype=np.int64)
    return indices.reshape(-1, 2)
