"""Labels as COCO instances: a JSON file with ``images``, ``annotations`` and ``categories``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.data.labels.resolving import labelled_images
from surelabel.errors import DataError
from surelabel.records import LabelledImages


def read(
    path: str | Path,
    *,
    pictures_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read which categories each picture has at least one instance of.

    A crowd counts as present. A picture without annotation has none of the categories:
    COCO was searched for all of them.

    Args:
        path: The JSON file.
        pictures_root: Where ``file_name`` starts; the folder of the file when None.
        names: Labels wanted, in this order; the categories in theirs when None. A name
            that is no category is unknown.

    Raises:
        DataError: the file is no COCO file, an id comes twice, an annotation points nowhere,
            pictures do not exist, or categories are not in ``names``.
    """
    path = Path(path)
    content = _content(path)
    try:
        categories = _by_id(path, "categories", content["categories"], "name")
        pictures = _by_id(path, "images", content["images"], "file_name")
        pairs = [(a["image_id"], a["category_id"]) for a in content["annotations"]]
        places = _places(path, pictures, categories, pairs)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path} must be a COCO file with images (id, file_name), categories (id, name) and "
            f"annotations (image_id, category_id). Missing or of another kind: {error}."
        ) from error
    columns = list(categories.values())
    if len(set(columns)) < len(columns):
        raise DataError(f"{path} must have categories of different names. Rename those alike.")
    targets = np.zeros((len(pictures), len(columns)))
    targets[places[:, 0], places[:, 1]] = 1.0
    return labelled_images(
        path, list(pictures.values()), columns, targets, pictures_root=pictures_root, names=names
    )


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} must be a COCO file in JSON. Got: {error}.") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} must be a COCO file: one JSON object. Got a {type(content)}.")
    return content


def _by_id(path: Path, kind: str, entries: list[dict[str, Any]], key: str) -> dict[Any, str]:
    found: dict[Any, str] = {}
    for entry in entries:
        if entry["id"] in found:
            raise DataError(
                f"{path} must give each of its {kind} an id of its own. Got {entry['id']!r} again. "
                "Take the repeated entries out, or number them anew."
            )
        found[entry["id"]] = str(entry[key])
    return found


def _places(
    path: Path, pictures: dict[Any, str], categories: dict[Any, str], pairs: list[tuple[Any, Any]]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Row and column of each annotation, ``(annotations, 2)``."""
    row = {image: number for number, image in enumerate(pictures)}
    column = {category: number for number, category in enumerate(categories)}
    lost = [(i, c) for i, c in pairs if i not in row or c not in column]
    if lost:
        raise DataError(
            f"{path} has {len(lost)} annotations of images or categories that it does not list; "
            f"the first: image {lost[0][0]!r}, category {lost[0][1]!r}. Take them out."
        )
    places = np.array([(row[i], column[c]) for i, c in pairs], dtype=np.int64)
    return places.reshape(-1, 2)
