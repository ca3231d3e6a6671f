"""Convert file entries to ``LabelledImages``: resolve image paths and order label columns."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.image_suffixes import complete_image_suffixes
from surelabel.errors import DataError
from surelabel.file_readers import contains_url, quote_of_file
from surelabel.label_aliases import LiteralLabel
from surelabel.records import LabelledImages, RowSelection
from surelabel.storage.image_paths import is_object_url, join_image_path
from surelabel.storage.stored_images import missing_stored_images

_INTEGER = re.compile(r"(0|[1-9]\d*)(\.0)?", re.ASCII)  # as pandas writes it, without leading zeros


def resolve_labelled_images(
    source: Path,
    images: Sequence[str],
    columns: Sequence[str],
    targets: Array,
    *,
    images_root: str | Path | None,
    names: Sequence[str] | None,
    reading: str = "",
    row_selection: RowSelection | None = None,
) -> LabelledImages:
    """Return annotated images with resolved paths and with columns in the order of ``names``.

    An image without a file at its path is completed with the suffix of the only image file of this
    name, so that ``000005`` is read as ``000005.jpg``. A ``|`` in the name of a column does not
    separate aliases.

    Args:
        source: Path of the annotation file.
        images: Image paths in the file, length n.
        columns: Labels of the columns of ``targets``.
        targets: Targets with 1 = positive, 0 = negative, NaN = unknown, ``(n, len(columns))``.
        images_root: Folder to which image paths are relative. If None, the folder of ``source`` is
            used.
        names: Labels to return, in the order of the columns. If None, ``columns`` is used. If a
            label has no column, the label is unknown for all images.
        reading: Description of how the columns of a table were read, without a full stop.
        row_selection: How each image was chosen for annotation, or None.

    Raises:
        DataError: If there are no images, if an image does not exist or is repeated, or if several
            image files have the name of an image without suffix. Also if a label contains a control
            character, or if a column is not in ``names``.
    """
    if not len(images):
        raise DataError(
            f"{source} must contain at least one image with labels; got none. Give another file or "
            "folder."
        )
    _check_resolved_labels(source, columns)
    root = images_root if images_root is not None else source.parent
    _check_resolved_images_unique(source, images)
    paths = resolve_image_paths(source, images, images_root)
    if missing := missing_stored_images(paths):
        complete_image_suffixes(source, paths, missing)
        _check_resolved_images_exist(source, [paths[row] for row in missing], len(paths), root)
        _check_resolved_images_unique(source, paths)
    if names is not None and list(names) != list(columns):
        targets = _reorder_resolved_label_columns(source, columns, targets, names)
    labels = [LiteralLabel(label) if "|" in label else label for label in columns]
    return LabelledImages(
        paths,
        labels if names is None else list(names),
        targets,
        reading=reading,
        row_selection=row_selection,
    )


def resolve_image_paths(
    source: Path, images: Sequence[str], images_root: str | Path | None
) -> list[str]:
    """Join the image paths of a file to ``images_root``, or to the folder of the file.

    Args:
        source: Path of the annotation file.
        images: Image paths in the file. An absolute path remains unchanged.
        images_root: Folder to which image paths are relative. If None, the folder of ``source`` is
            used.
    """
    root = os.fspath(images_root if images_root is not None else source.parent)
    return [join_image_path(root, image) for image in images]


def resolve_label_columns(source: Path, labels: set[str], names: Sequence[str] | None) -> list[str]:
    """Return ``names`` as label columns, or the sorted labels of the file if ``names`` is None.

    Raises:
        DataError: If a label of the file is not in ``names``.
    """
    if names is None:
        return sorted(labels)
    check_label_resolution(source, labels, names)
    return list(names)


def check_label_resolution(
    source: Path, labels: Sequence[str] | set[str], names: Sequence[str]
) -> None:
    """Check that each label of a file is in ``names``.

    Raises:
        DataError: If a label of the file is not in ``names``; the message contains the first three
            of these labels in sorted order.
    """
    allowed = set(names)
    if extra := [label for label in sorted(labels) if label not in allowed]:
        raise DataError(
            f"The labels of {source} must be in names, which has "
            f"{format_count(len(allowed), 'label')}; got "
            f"{format_count(len(extra), 'other label')}: {quote_first_unresolved(extra)}. Correct "
            "the labels, or read the file without names."
        )


def quote_first_unresolved(items: Sequence[str]) -> str:
    """Return up to three unresolved items as text, with an ellipsis if there are more."""
    return ", ".join(map(repr, items[:3])) + (", …" if len(items) > 3 else "")


def unresolved_image_path(path: str, folder: Path) -> str:
    """Return the path of an image relative to ``folder``, or its absolute path if it is outside.

    Folders are separated by ``/``. The URL of an object is returned unchanged.
    """
    if is_object_url(path):
        return path
    absolute, root = os.path.abspath(path), os.path.abspath(folder)
    is_inside = os.path.commonpath([absolute, root]) == root
    return Path(os.path.relpath(absolute, root) if is_inside else absolute).as_posix()


def _check_resolved_images_unique(source: Path, images: Sequence[str]) -> None:
    if len(set(images)) == len(images):
        return
    repeated = [path for path, count in Counter(images).items() for _ in range(count - 1)]
    raise DataError(
        f"{source} must contain each image once; got "
        f"{format_count(len(repeated), 'repeated entry', 'repeated entries')}: "
        f"{quote_first_unresolved(repeated)}. Remove the repeated entries."
    )


def _check_resolved_labels(source: Path, columns: Sequence[str]) -> None:
    invalid = next((label for label in columns if has_control_character(label)), None)
    if invalid is not None:
        raise DataError(
            f"{source}: a label must not contain a line break, a tab or another control character; "
            f"got {quote_of_file(invalid)}. Correct the label."
        )


def _check_resolved_images_exist(
    source: Path, paths: Sequence[str], n_images: int, root: str | Path
) -> None:
    if missing := [paths[row] for row in missing_stored_images(paths)]:
        n_integers = sum(_INTEGER.fullmatch(os.path.basename(path)) is not None for path in missing)
        cause = ""
        if len(missing) == n_images and 2 * n_integers > n_images:
            cause = (
                "The image names are integers, which may have lost leading zeros (0 in place of "
                "00000). Read the image names as strings, in pandas with dtype=str. "
            )
        if any(map(contains_url, missing)):
            cause = (
                "URLs are not downloaded: download the images, and replace each URL by the file "
                "name. "
            )
        raise DataError(
            f"All images of {source} must exist; {len(missing)} of {n_images} missing: "
            f"{quote_first_unresolved(missing)}. {cause}Paths are relative to {root}: give another "
            "images_root, or remove these entries."
        )


def _reorder_resolved_label_columns(
    source: Path, columns: Sequence[str], targets: Array, names: Sequence[str]
) -> Array:
    check_label_resolution(source, columns, names)
    column_of = {label: column for column, label in enumerate(columns)}
    reordered = np.full((len(targets), len(names)), np.nan)
    for index, name in enumerate(names):
        if name in column_of:
            reordered[:, index] = targets[:, column_of[name]]
    return reordered
