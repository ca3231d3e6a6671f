"""Conversion of file entries to ``LabelledImages``: image paths and order of label columns."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surelabel.errors import DataError
from surelabel.records import Array, LabelledImages


def resolve_labelled_images(
    source: Path,
    images: Sequence[str],
    columns: Sequence[str],
    targets: Array,
    *,
    images_root: str | Path | None,
    names: Sequence[str] | None,
) -> LabelledImages:
    """Return annotated images with resolved paths and with columns in the order of ``names``.

    Args:
        source: Label file, for messages; its folder is the default of ``images_root``.
        images: Paths of the images in the file, length n.
        columns: Labels of the columns of ``targets``.
        targets: 1 = positive, 0 = negative, NaN = unknown, ``(n, len(columns))``.
        images_root: Folder of relative image paths.
        names: Labels to return, in this order; a label without a column is unknown for all
            images. None for ``columns``.

    Raises:
        DataError: If there are no images, if an image does not exist or is repeated, or if a
            column is not in ``names``.
    """
    if not len(images):
        raise DataError(f"{source} must have at least one image with labels; got none.")
    root = Path(images_root) if images_root is not None else source.parent
    paths = [os.path.join(root, image) for image in images]
    _check_unique_images(source, images)
    _check_images_exist(source, paths, root)
    if names is not None and list(names) != list(columns):
        targets = _reorder_label_columns(source, columns, targets, names)
    return LabelledImages(paths, list(columns if names is None else names), targets)


def label_columns(source: Path, labels: set[str], names: Sequence[str] | None) -> list[str]:
    """Return the label columns of a file without a header: ``names``, or else its sorted labels.

    Raises:
        DataError: If a label of the file is not in ``names``.
    """
    if names is None:
        return sorted(labels)
    check_labels_in_names(source, labels, names)
    return list(names)


def check_labels_in_names(
    source: Path, labels: Sequence[str] | set[str], names: Sequence[str]
) -> None:
    """Raise an error if a label of the file is not in ``names``.

    Raises:
        DataError: If there is such a label; the message has the first three.
    """
    allowed = set(names)
    if extra := [label for label in sorted(labels) if label not in allowed]:
        raise DataError(
            f"The labels of {source} must be among the {len(allowed)} in names; {len(extra)} are "
            f"not: {quote_first_three(extra)}. Correct them, or read the file without names."
        )


def quote_first_three(items: Sequence[str]) -> str:
    """Return the first three items as text, with an ellipsis if there are more."""
    return ", ".join(map(repr, items[:3])) + (", …" if len(items) > 3 else "")


def path_relative_to_folder(path: str, folder: Path) -> str:
    """Return ``path`` relative to ``folder`` if it lies inside, else the absolute path."""
    absolute, root = os.path.abspath(path), os.path.abspath(folder)
    is_inside = os.path.commonpath([absolute, root]) == root
    return Path(os.path.relpath(absolute, root) if is_inside else absolute).as_posix()


def _check_unique_images(source: Path, images: Sequence[str]) -> None:
    if len(set(images)) == len(images):
        return
    repeated = [path for path, count in Counter(images).items() for _ in range(count - 1)]
    raise DataError(
        f"{source} must have each image once; got {len(repeated)} repeated entries: "
        f"{quote_first_three(repeated)}. Remove them."
    )


def _check_images_exist(source: Path, paths: Sequence[str], root: Path) -> None:
    if missing := [path for path in paths if not os.path.exists(path)]:
        raise DataError(
            f"All {len(paths)} images of {source} must exist; {len(missing)} do not: "
            f"{quote_first_three(missing)}. Relative paths start at {root}: give another "
            "images_root, or remove these entries."
        )


def _reorder_label_columns(
    source: Path, columns: Sequence[str], targets: Array, names: Sequence[str]
) -> Array:
    check_labels_in_names(source, columns, names)
    column_of = {label: column for column, label in enumerate(columns)}
    reordered = np.full((len(targets), len(names)), np.nan)
    for index, name in enumerate(names):
        if name in column_of:
            reordered[:, index] = targets[:, column_of[name]]
    return reordered
