"""Read COCO instances: a JSON file with ``images``, ``annotations`` and ``categories``."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surelabel.data.coco_json import (
    coco_annotation_indices,
    coco_category_names,
    coco_values_by_id,
    read_coco_json,
)
from surelabel.data.labels.resolution.image_resolution import resolve_labelled_images
from surelabel.errors import DataError
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
        categories = coco_category_names(path, content["categories"])
        images = coco_values_by_id(path, "images", content["images"], "file_name")
        indices = coco_annotation_indices(path, images, categories, content["annotations"])
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path} must be a COCO file with images (id, file_name), categories (id, name) and "
            f"annotations (image_id, category_id); got a missing or invalid entry: {error}. "
            "Correct the file."
        ) from error
    columns = list(categories.values())
    targets = np.zeros((len(images), len(columns)))
    targets[indices[:, 0], indices[:, 1]] = 1.0
    return resolve_labelled_images(
        path, list(images.values()), columns, targets, images_root=images_root, names=names
    )
