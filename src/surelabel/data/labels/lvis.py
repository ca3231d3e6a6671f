"""Read LVIS annotations: COCO JSON, with ``neg_category_ids`` for each image."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.arrays import ColumnIndices
from surelabel.data.coco_json import (
    coco_annotation_indices,
    coco_category_names,
    coco_values_by_id,
    read_coco_json,
)
from surelabel.data.labels.resolution.image_resolution import (
    resolve_image_paths,
    resolve_labelled_images,
)
from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.errors import DataError
from surelabel.file_readers import open_regular_file, quote_of_file
from surelabel.records import LabelledImages
from surelabel.storage.stored_images import missing_stored_images

_NEGATIVE = "neg_category_ids"
_NOT_EXHAUSTIVE = "not_exhaustive_category_ids"
_LVIS_KEY = re.compile(rb'"neg_category_ids"\s*:')
_BLOCK_BYTES = 2**24  # of a file that is searched for the key
_KEY_BYTES = 64  # end of a block that is searched again with the next block
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]+/(.+)")


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read annotated images from a JSON file of LVIS v1 or v0.5.

    A category with an annotation in an image is positive, even if it is in
    ``not_exhaustive_category_ids``. A category in ``neg_category_ids`` is negative. Every other
    category is unknown, even if it is in ``not_exhaustive_category_ids``.
    The labels are the names of the categories as they are written in the file, such as
    ``dog_collar``; synonyms are not read.

    The path of an image is the first of these paths that exists: its ``file_name``; the last two
    parts of its ``coco_url``, such as ``val2017/000000397133.jpg``; the last part of its
    ``coco_url``. The official files of LVIS v1 have no ``file_name``, and their images are in the
    folders ``train2017`` and ``val2017`` of COCO.

    Args:
        path: Path of the JSON file.
        images_root: Folder to which image paths are relative, such as the folder that contains
            ``train2017`` and ``val2017``. If None, the folder of the JSON file is used.
        names: Labels to return, in the order of the columns. If None, the categories are returned
            in the order of the file. If a label is not a category, its targets are unknown.

    Raises:
        DataError: If the file is not an LVIS file, if an id or a category name is repeated, or if
            an id is unknown. Also if a category has an annotation and is in ``neg_category_ids`` of
            the same image, if an image path leaves ``images_root``, if an image does not exist, or
            if a category is not in ``names``.
    """
    path = Path(path)
    content = read_coco_json(path)
    try:
        categories = coco_category_names(path, content["categories"])
        images: list[dict[str, Any]] = content["images"]
        ids = coco_values_by_id(path, "images", images, "id")
        positive = coco_annotation_indices(path, ids, categories, content["annotations"])
        paths = [_lvis_image_paths(path, number, image) for number, image in enumerate(images)]
        negative = _lvis_category_indices(path, images, categories, _NEGATIVE)
        _lvis_category_indices(path, images, categories, _NOT_EXHAUSTIVE)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path} must be an LVIS file with images (id, coco_url, neg_category_ids), categories "
            "(id, name) and annotations (image_id, category_id); got a missing or invalid entry: "
            f"{error}. Correct the file."
        ) from error
    columns = list(categories.values())
    targets = np.full((len(images), len(columns)), np.nan)
    targets[negative[:, 0], negative[:, 1]] = 0.0
    if (is_both := targets[positive[:, 0], positive[:, 1]] == 0).any():
        row, column = positive[is_both][0]
        raise DataError(
            f"{path}, images[{row}]: a category must be either annotated or in {_NEGATIVE}; got "
            f"{quote_of_file(columns[column])} in both for the image {quote_of_file(paths[row][0])}"
            f". Remove the annotations, or the id from {_NEGATIVE}."
        )
    targets[positive[:, 0], positive[:, 1]] = 1.0
    return resolve_labelled_images(
        path,
        _select_lvis_image_paths(path, paths, images_root),
        columns,
        targets,
        images_root=images_root,
        names=names,
        reading=(
            "categories with an annotation are positive, those in neg_category_ids are negative, "
            "and all others are unknown"
        ),
    )


def is_lvis_file(path: str | Path) -> bool:
    """Return True if a JSON file contains the key ``neg_category_ids``, which COCO does not have.

    The file is searched in blocks and is not parsed.

    Raises:
        DataError: If the file cannot be read.
    """
    end = b""
    with open_regular_file(path) as file:
        while block := file.read(_BLOCK_BYTES):
            if _LVIS_KEY.search(end + block):
                return True
            end = block[-_KEY_BYTES:]
    return False


def _lvis_image_paths(path: Path, number: int, image: dict[str, Any]) -> list[str]:
    """Return the possible paths of an image, of which the first is preferred.

    Args:
        path: Path of the JSON file.
        number: Index of the image in the file.
        image: Entry of the image.

    Raises:
        DataError: If the entry has no path, or a path that leaves the folder of the images.
    """
    place = f"{path}, images[{number}]"
    paths = []
    if "file_name" in image:
        paths.append(str(image["file_name"]))
    if "coco_url" in image:
        url = _URL.fullmatch(str(image["coco_url"]))
        if url is None:
            raise DataError(
                f"{place}: coco_url must be a URL such as http://HOST/val2017/000000397133.jpg; "
                f"got {quote_of_file(image['coco_url'])}. Correct the URL."
            )
        parts = url[1].split("/")
        paths += ["/".join(parts[-2:]), parts[-1]]
    if not paths:
        raise DataError(
            f"{place}: an image must have coco_url or file_name; got neither. Add one of them."
        )
    for candidate in paths:
        check_relative_image_path(place, candidate)
    return paths


def _lvis_category_indices(
    path: Path, images: list[dict[str, Any]], categories: dict[Any, str], key: str
) -> ColumnIndices:
    """Return the row and the column of each category in a list of the images, ``(m, 2)``.

    Args:
        path: Path of the JSON file.
        images: Images of the file.
        categories: Name of each category by its id.
        key: Key of the lists; only ``neg_category_ids`` is required.

    Raises:
        DataError: If a value is missing or is not a list, or if a list contains an unknown id.
    """
    column = {category: number for number, category in enumerate(categories)}
    indices = []
    for number, image in enumerate(images):
        ids = image.get(key, [] if key == _NOT_EXHAUSTIVE else None)
        if not isinstance(ids, list):
            got = quote_of_file(ids) if key in image else "no such key"
            raise DataError(
                f"{path}, images[{number}]: {key} must be a list of category ids; got {got}. "
                "Correct the entry."
            )
        for category in ids:
            if category not in column:
                raise DataError(
                    f"{path}, images[{number}]: {key} must contain ids of categories; got "
                    f"{quote_of_file(category)}. Remove this id."
                )
            indices.append((number, column[category]))
    return np.array(indices, dtype=np.intp).reshape(-1, 2)


def _select_lvis_image_paths(
    path: Path, paths: Sequence[Sequence[str]], images_root: str | Path | None
) -> list[str]:
    """Return the first path of each image that exists, or its first path if none exists.

    Args:
        path: Path of the JSON file.
        paths: Possible paths of each image.
        images_root: Folder to which image paths are relative, or None for the folder of the file.
    """
    selected = [candidates[0] for candidates in paths]
    rows, layout = list(range(len(paths))), 0
    while rows:
        candidates = [paths[row][layout] for row in rows]
        missing = set(missing_stored_images(resolve_image_paths(path, candidates, images_root)))
        for number, row in enumerate(rows):
            if number not in missing:
                selected[row] = candidates[number]
        layout += 1
        rows = [rows[number] for number in sorted(missing) if len(paths[rows[number]]) > layout]
    return selected
