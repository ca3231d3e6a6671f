"""Parse labels of single images in JSON objects: ``{"labels": ["dog"], "absent": ["cat"]}``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.image_resolution import (
    quote_first_unresolved,
    resolve_label_columns,
    resolve_labelled_images,
)
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.records import LabelledImages


@dataclass(frozen=True)
class ImageEntry:
    """Labels of one image.

    Attributes:
        path: Path of the image in the annotations.
        labels: Positive labels.
        absent: Negative labels. If None, all labels that are not in ``labels`` are negative.
    """

    path: str
    labels: list[str]
    absent: list[str] | None


def image_entry(place: str, value: dict[str, Any], *, remedy: str) -> ImageEntry:
    """Return the entry of an image after a check of its labels.

    Args:
        place: Place of the entry in messages, such as ``labels.jsonl, line 3``.
        value: JSON object with ``path``, ``labels`` and optionally ``absent``; see
            :func:`is_image_entry`.
        remedy: Last sentence of the error message.

    Raises:
        DataError: If a label contains a control character, or is in both lists.
    """
    entry = ImageEntry(value["path"], value["labels"], value.get("absent"))
    labels = (*entry.labels, *(entry.absent or ()))
    if invalid := next((label for label in labels if has_control_character(label)), None):
        raise DataError(
            f"{place}: a label must not contain a line break, a tab or another control character; "
            f"got {quote_of_file(invalid)}. {remedy}"
        )
    if both := sorted(set(entry.labels) & set(entry.absent or ())):
        raise DataError(
            f"{place}: a label must be either in labels or in absent; got "
            f"{quote_first_unresolved(both)} in both lists. {remedy}"
        )
    return entry


def is_image_entry(value: Any) -> bool:
    """Return True for an object with ``path``, the list ``labels`` and, optionally, ``absent``."""

    def is_label_list(labels: Any) -> bool:
        return isinstance(labels, list) and all(isinstance(n, str) and n for n in labels)

    return (
        isinstance(value, dict)
        and isinstance(value.get("path"), str)
        and bool(value["path"])
        and is_label_list(value.get("labels"))
        and (value.get("absent") is None or is_label_list(value["absent"]))
    )


def resolve_image_entries(
    path: Path,
    entries: Sequence[ImageEntry],
    *,
    images_root: str | Path | None,
    names: Sequence[str] | None,
    classes: Sequence[str] | None = None,
    reading: str = "",
) -> LabelledImages:
    """Convert entries of images to annotated images with resolved paths.

    Args:
        path: Path of the annotations.
        entries: Entries of n images.
        images_root: Folder to which image paths are relative. If None, the folder of ``path`` is
            used.
        names: Labels to return, in the order of the columns. If None, ``classes`` is returned, or
            the sorted labels of the entries without ``classes``.
        classes: All labels that were annotated. A label of ``names`` that is not among them is
            unknown. If None, every label of ``names`` was annotated.
        reading: Description of how the annotations were read, without a full stop.

    Raises:
        DataError: If an image does not exist, or if a label is not in ``names`` or ``classes``.
    """
    labels = {label for entry in entries for label in (*entry.labels, *(entry.absent or ()))}
    columns = resolve_label_columns(path, labels, names if classes is None else classes)
    column_of = {label: column for column, label in enumerate(columns)}
    targets = np.zeros((len(entries), len(columns)))
    for row, entry in zip(targets, entries, strict=True):
        if entry.absent is not None:
            row[:] = np.nan
            row[[column_of[label] for label in entry.absent]] = 0.0
        row[[column_of[label] for label in entry.labels]] = 1.0
    images = [entry.path for entry in entries]
    return resolve_labelled_images(
        path, images, columns, targets, images_root=images_root, names=names, reading=reading
    )
