"""Complete image names without suffix, such as ``000005`` in the lists of VOC."""

import os
from collections.abc import Sequence
from pathlib import Path

from surelabel.data.images import IMAGE_SUFFIXES
from surelabel.errors import DataError


def complete_image_suffixes(source: Path, paths: list[str], rows: Sequence[int]) -> None:
    """Replace paths in place by the path of the only image file with this name and a suffix.

    A path without such a file remains unchanged.

    Args:
        source: Path of the annotation file, for messages.
        paths: Paths of images.
        rows: Indices of the paths without a file.

    Raises:
        DataError: If several image files have the name of a path.
    """
    files_of_folder: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        folder, name = os.path.split(paths[row])
        if folder not in files_of_folder:
            files_of_folder[folder] = _image_files_by_stem(folder)
        files = files_of_folder[folder].get(name, [])
        if len(files) > 1:
            raise DataError(
                f"{source}: an image name without suffix must match one file; {name!r} matches "
                f"{' and '.join(map(repr, sorted(files)))} in {folder or '.'}. Write the suffix "
                "into the table, or keep only one of these files in the folder."
            )
        if files:
            paths[row] = os.path.join(folder, files[0])


def _image_files_by_stem(folder: str) -> dict[str, list[str]]:
    """Return the image files of a folder by their names without suffix; none if it is no folder."""
    try:
        files = os.listdir(folder or ".")
    except OSError:
        return {}
    by_stem: dict[str, list[str]] = {}
    for file in files:
        stem, suffix = os.path.splitext(file)
        if suffix.lower() in IMAGE_SUFFIXES:
            by_stem.setdefault(stem, []).append(file)
    return by_stem
