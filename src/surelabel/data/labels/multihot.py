"""Read and write multi-hot targets in NumPy files: ``.npz``, or ``.npy`` with lists of texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.array_files import array_keys, map_array, read_arrays
from surelabel.arrays import Array
from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.image_resolution import (
    resolve_labelled_images,
    unresolved_image_path,
)
from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.data.labels.resolution.table_options import TableOptions, TargetReading
from surelabel.data.labels.resolution.target_cells import are_targets, interpret_targets
from surelabel.data.text_lists import read_text_list
from surelabel.errors import DataError, InputError
from surelabel.file_readers import quote_of_file
from surelabel.files import atomic_file, check_writable_file_paths
from surelabel.mapped_arrays import mapped_zeros
from surelabel.records import LabelledImages

ARRAYS = ("targets", "paths", "names")
NAMES_FILE, PATHS_FILE = "names.txt", "paths.txt"
MAX_BYTES = 2**32  # of the arrays of an .npz file after decompression

_MAIN_ARRAYS = frozenset({"targets", "paths"})  # a file without names is damaged
_OTHER_ARCHIVES = frozenset({"features", "scores"})  # keys of archives of vectors and of scores
_SAVE_AGAIN = "Save plain arrays: numpy.savez(FILE, targets=…, paths=…, names=…)."


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    minus_one: TargetReading | None = None,
    zero: TargetReading | None = None,
) -> LabelledImages:
    """Read annotated images from multi-hot targets in a NumPy file.

    - An ``.npz`` file contains three arrays: ``targets`` ``(n, c)``, the image paths ``paths``
      ``(n,)``, and the labels of the columns ``names`` ``(c,)``.
    - An ``.npy`` file contains ``targets`` ``(n, c)``. The text files ``paths.txt`` and
      ``names.txt`` in its folder contain one image path for each row, and one label for each
      column, each on one line.

    Targets are Booleans, integers or floats: 1 or True is positive, 0 or False is negative, NaN is
    unknown, and a number between 0 and 1 is a soft target.

    Args:
        path: Path of the ``.npz`` or ``.npy`` file.
        images_root: Folder to which image paths are relative. If None, the folder of the file is
            used.
        names: Labels to return, in the order of the columns. If None, the labels of the file are
            returned. If a label has no column, its targets are unknown.
        minus_one: Meaning of the target -1, ``negative`` or ``unknown``. If None, a file with -1 is
            refused.
        zero: Meaning of the target 0, ``negative`` or ``unknown``. If None, 0 is negative; but a
            file with -1 and 0 is refused if ``minus_one`` is ``negative``.

    Raises:
        DataError: If the file is damaged, needs pickle, has more than 4 GiB after decompression, or
            contains other arrays. Also if an array has a wrong type or shape, if a target is not in
            [0, 1], if a label is repeated, if an image path leaves the folder, if an image does not
            exist, or if a label is not in ``names``.
        InputError: If an option has an invalid value.
    """
    options = TableOptions(minus_one=minus_one, zero=zero)
    path = Path(path)
    if path.suffix.lower() == ".npy":
        array = map_array(path, remedy="Save a plain array with numpy.save.")
        images = _read_multihot_texts(path.with_name(PATHS_FILE))
        columns = _read_multihot_texts(path.with_name(NAMES_FILE))
        places = (f"{path.with_name(PATHS_FILE)}, line {row + 1}" for row in range(len(images)))
    else:
        array, images, columns = _read_multihot_archive(path)
        places = (f"{path}, row {row} of paths" for row in range(len(images)))
    _check_multihot_arrays(path, array, images, columns)
    for place, image in zip(places, images, strict=True):
        check_relative_image_path(place, image, allows_absolute=True)
    targets = _targets_of_array(path, array, columns)
    interpret_targets(
        str(path), targets, options, lambda row, column: _place_of_target(columns, row, column)
    )
    meanings = [
        f"{text} is {value}"
        for text, value in (("-1", minus_one), ("0", zero))
        if value is not None
    ]
    return resolve_labelled_images(
        path,
        images,
        columns,
        targets,
        images_root=images_root,
        names=names,
        reading=f"multi-hot {array.dtype} targets{', where ' if meanings else ''}"
        + " and ".join(meanings),
    )


def write(labelled: LabelledImages, path: str | Path) -> None:
    """Write annotated images as a compressed ``.npz`` file; unknown targets are NaN.

    Args:
        labelled: Annotated images to write.
        path: Path of the file. Paths of images inside the folder of this file are written relative
            to the folder.

    Raises:
        InputError: If the path has another suffix than ``.npz``, if a label contains a control
            character, or if the images state how they were chosen.
        DataError: If an image path is not valid UTF-8, or if the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() != ".npz":
        raise InputError(
            f"Multi-hot targets are written to an .npz file; got {path}. Give a path with the "
            "suffix .npz."
        )
    if labelled.row_selection is not None:
        raise InputError(
            "Multi-hot files cannot store how each row was chosen; got images with row_selection. "
            "Write CSV (.csv) instead."
        )
    if invalid := next((name for name in labelled.names if has_control_character(name)), None):
        raise InputError(
            "A label must not contain a line break, a tab or another control character; got "
            f"{quote_of_file(invalid)}. Rename the label."
        )
    check_writable_file_paths(labelled.paths)
    images = [unresolved_image_path(image, path.parent) for image in labelled.paths]
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            targets=np.where(labelled.known, labelled.targets, np.nan),
            paths=np.array(images, dtype=str),
            names=np.array(labelled.names, dtype=str),
        )


def is_multihot_file(path: Path) -> bool:
    """Return True for an ``.npy`` file, and for an ``.npz`` file with targets and paths.

    An ``.npz`` file of feature vectors or of scores is not a multi-hot file.

    Args:
        path: Path of a file, which may not exist.
    """
    if path.suffix.lower() == ".npz" and path.is_file():
        try:
            keys = set(array_keys(path))
        except DataError:
            return False  # reading the file raises the error
        return keys.issuperset(_MAIN_ARRAYS) and keys.isdisjoint(_OTHER_ARCHIVES)
    return path.suffix.lower() == ".npy" and path.is_file()


def _read_multihot_archive(path: Path) -> tuple[npt.NDArray[Any], list[str], list[str]]:
    """Return the targets, the image paths and the labels of an ``.npz`` file."""
    kind = "an .npz file with multi-hot targets"
    arrays = read_arrays(path, ARRAYS, kind=kind, remedy=_SAVE_AGAIN, max_bytes=MAX_BYTES)
    if others := [key for key in array_keys(path) if key not in ARRAYS]:
        raise DataError(
            f"{path} must contain only the arrays {', '.join(ARRAYS)}; also got "
            f"{quote_of_file(', '.join(others))}. {_SAVE_AGAIN}"
        )
    return (
        arrays["targets"],
        _texts_of_multihot_array(path, "paths", arrays["paths"]),
        _texts_of_multihot_array(path, "names", arrays["names"]),
    )


def _texts_of_multihot_array(path: Path, key: str, array: npt.NDArray[Any]) -> list[str]:
    if array.ndim != 1 or array.dtype.kind not in "US":
        raise DataError(
            f"{path}: the array {key} must contain strings in one dimension; got an array of shape "
            f"{array.shape} and type {array.dtype}. Save numpy.array({key}, dtype=str)."
        )
    texts = []
    for number, text in enumerate(array.tolist()):
        try:
            texts.append(text.decode("utf-8") if isinstance(text, bytes) else text)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}: the array {key} must contain text in UTF-8; got {text!r:.60} at position "
                f"{number}. Save numpy.array({key}, dtype=str)."
            ) from error
    return texts


def _read_multihot_texts(file: Path) -> list[str]:
    """Return the lines of ``names.txt`` or ``paths.txt``, which are not empty."""
    if not file.exists():
        raise DataError(
            f"{file} must contain one {'label' if file.name == NAMES_FILE else 'image path'} on "
            "each line; this file is missing. Add it beside the .npy file, or save an .npz file "
            "with the arrays targets, paths and names."
        )
    lines = read_text_list(file)
    if "" in lines:
        raise DataError(
            f"{file}, line {lines.index('') + 1}: expected one "
            f"{'label' if file.name == NAMES_FILE else 'image path'} on each line; got an empty "
            "line. Remove the line, or add the text."
        )
    return lines


def _check_multihot_arrays(
    path: Path, array: npt.NDArray[Any], images: Sequence[str], columns: Sequence[str]
) -> None:
    """Check the type and shape of the targets, and that labels are unique and not empty.

    Raises:
        DataError: If a check fails.
    """
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        remedy = "Save one row per image and one column per label"
        remedy += ": for one label, targets.reshape(-1, 1)." if array.ndim == 1 else "."
        raise DataError(
            f"{path}: targets must be a two-dimensional array of Booleans, integers or floats; got "
            f"an array of shape {array.shape} and type {array.dtype}. {remedy}"
        )
    if array.shape != (len(images), len(columns)):
        raise DataError(
            f"{path}: targets must have one row per path and one column per name, "
            f"{(len(images), len(columns))}; got the shape {array.shape}. Correct the paths, names "
            "or targets."
        )
    if not len(columns):
        raise DataError(f"{path} must contain at least one label; got none. Add columns.")
    first: dict[str, int] = {}
    for column, label in enumerate(columns):
        if not label.strip() or label in first:
            again = f", which is also column {first[label]}" if label in first else ""
            raise DataError(
                f"{path}, column {column}: labels must be unique and not empty; got "
                f"{quote_of_file(label)}{again}. Rename the label."
            )
        first[label] = column


def _targets_of_array(path: Path, array: npt.NDArray[Any], columns: Sequence[str]) -> Array:
    """Return a copy of the targets with -1 and NaN, ``(n, c)``.

    Raises:
        DataError: If a target is neither -1, nor NaN, nor in [0, 1].
    """
    targets = mapped_zeros(array.shape, np.float64)
    targets[:] = array
    is_valid = are_targets(targets)
    if not is_valid.all():
        row, column = np.argwhere(~is_valid)[0]
        raise DataError(
            f"{path}, {_place_of_target(columns, row, column)} must be in [0, 1] (1 is positive) "
            f"or NaN (unknown); got {array[row, column]}. Correct the targets."
        )
    return targets


def _place_of_target(columns: Sequence[str], row: int, column: int) -> str:
    return f"row {row}: the target of {quote_of_file(columns[column])}"
