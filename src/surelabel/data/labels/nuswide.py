"""Read NUS-WIDE: a list of images, and one text file of targets per concept, or a tag matrix."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.image_resolution import resolve_labelled_images
from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.data.labels.resolution.table_options import TARGET_READINGS, TargetReading
from surelabel.errors import DataError, InputError
from surelabel.file_readers import open_lines, quote_of_file, read_text
from surelabel.mapped_arrays import mapped_zeros
from surelabel.records import LabelledImages

CONCEPTS, TAGS = "Concepts81.txt", "TagList1k.txt"
LIST_FOLDER, TAG_FOLDER = "ImageList", "NUS_WID_Tags"

_COPY_AGAIN = "Copy both files of the same part of NUS-WIDE again."


class _Split(NamedTuple):
    """Files of a part of the images, relative to the folder of NUS-WIDE."""

    images: str
    targets: str  # of a concept
    tags: str


_SPLITS = (
    _Split("Imagelist.txt", "Groundtruth/AllLabels/Labels_{}.txt", "AllTags1k.txt"),
    _Split(
        "TrainImagelist.txt", "Groundtruth/TrainTestLabels/Labels_{}_Train.txt", "Train_Tags1k.dat"
    ),
    _Split(
        "TestImagelist.txt", "Groundtruth/TrainTestLabels/Labels_{}_Test.txt", "Test_Tags1k.dat"
    ),
)


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    missing: TargetReading | None = None,
) -> LabelledImages:
    r"""Read annotated images of NUS-WIDE.

    ``path`` selects the images and the labels:

    - The folder of NUS-WIDE, or ``ImageList/Imagelist.txt``: all images with the concepts.
    - ``ImageList/TrainImagelist.txt`` or ``TestImagelist.txt``: images of a split with the
      concepts.
    - ``NUS_WID_Tags/AllTags1k.txt``, ``Train_Tags1k.dat`` or ``Test_Tags1k.dat``: all images, or
      those of a split, with the tags of Flickr users.

    The concepts are those of ``Concepts81.txt`` or ``ConceptsList/Concepts81.txt``. The targets of
    a concept are in ``Groundtruth/AllLabels/Labels_CONCEPT.txt``, or for a split in
    ``Groundtruth/TrainTestLabels/Labels_CONCEPT_Train.txt``: 1 is positive and 0 is negative. A tag
    with 1 is positive. A ``\`` in an image path separates folders.

    Args:
        path: Path of the folder of NUS-WIDE, of an image list or of a tag matrix.
        images_root: Folder to which image paths are relative. If None, the subfolder ``Flickr`` of
            the folder of NUS-WIDE is used if it exists, and otherwise the folder of NUS-WIDE.
        names: Labels to return, in the order of the columns. If None, the labels are returned in
            the order of the list of concepts or tags.
        missing: Meaning of a tag that an image does not have, ``negative`` or ``unknown``. If None,
            such a tag is negative. The option is only accepted for tags.

    Raises:
        DataError: If a file is missing, if a value is neither 0 nor 1, if files have different
            numbers of lines, if an image path is absolute or leaves the folder, if a label is
            repeated or not in ``names``, or if an image does not exist.
        InputError: If ``missing`` is given for concepts or has an invalid value.
    """
    source = Path(path)
    folder, split, has_tags = _resolve_nuswide_path(source)
    if missing is not None and (not has_tags or missing not in TARGET_READINGS):
        raise InputError(
            f"missing must be one of {', '.join(TARGET_READINGS)}, and can be given only for the "
            f"tags of NUS-WIDE; got {missing!r} for {path}. Remove this option, or give a file of "
            f"{TAG_FOLDER}."
        )
    images, columns, targets = _read_nuswide_part(folder, split, has_tags=has_tags)
    if has_tags:
        if missing == "unknown":
            targets[targets == 0] = np.nan
        reading = f"{len(columns):,} tags of {split.tags}; a missing tag is {missing or 'negative'}"
    else:
        reading = f"{format_count(len(columns), 'concept')} of {Path(split.targets).parent}"
    if images_root is None:
        images_root = folder / "Flickr" if (folder / "Flickr").is_dir() else folder
    return resolve_labelled_images(
        folder / LIST_FOLDER / split.images,
        images,
        columns,
        targets,
        images_root=images_root,
        names=names,
        reading=f"NUS-WIDE, images of {split.images}, {reading}",
    )


def read_nuswide_targets(
    folder: Path, split: Literal["train", "test"], *, has_tags: bool = False
) -> tuple[list[str], list[str], Array]:
    """Return the images, the labels and the targets of a split, without looking up images.

    Args:
        folder: Folder of NUS-WIDE.
        split: Split of ``ImageList``.
        has_tags: Whether the labels are the tags of ``NUS_WID_Tags``. If False, the labels are the
            concepts.

    Returns:
        Paths of the images in ``Flickr``, length n, labels in the order of their file, length c,
        and targets with 1 = positive and 0 = negative, ``(n, c)``.

    Raises:
        DataError: If a file is missing or invalid; see :func:`read`.
    """
    part = _SPLITS[1 if split == "train" else 2]
    return _read_nuswide_part(folder, part, has_tags=has_tags)


def is_nuswide_path(path: str | Path) -> bool:
    """Return True if a path is the folder of NUS-WIDE, or one of its image lists or tag matrices.

    Only the names of files are examined.

    Args:
        path: Path of a file or folder.
    """
    source = Path(path)
    if source.is_dir():
        return any((source / LIST_FOLDER / split.images).is_file() for split in _SPLITS)
    return source.is_file() and _find_nuswide_split(source) is not None


def _find_nuswide_split(file: Path) -> tuple[_Split, bool] | None:
    """Return the split of a file, and whether the file is a tag matrix; None for other files."""
    folder = Path(os.path.abspath(file)).parent.name
    for split in _SPLITS:
        if (folder, file.name) in ((LIST_FOLDER, split.images), (TAG_FOLDER, split.tags)):
            return split, folder == TAG_FOLDER
    return None


def _resolve_nuswide_path(source: Path) -> tuple[Path, _Split, bool]:
    """Return the folder of NUS-WIDE, the split, and whether the labels are tags."""
    if source.is_dir():
        if not (source / LIST_FOLDER / _SPLITS[0].images).is_file():
            raise DataError(
                f"{source} must be the folder of NUS-WIDE with {LIST_FOLDER}/{_SPLITS[0].images}; "
                f"this file is missing. Add it, or give {LIST_FOLDER}/{_SPLITS[1].images}."
            )
        return source, _SPLITS[0], False
    found = _find_nuswide_split(source)
    if found is None:
        files = ", ".join(
            f"{folder}/{name}"
            for folder, position in ((LIST_FOLDER, 0), (TAG_FOLDER, 2))
            for name in (split[position] for split in _SPLITS)
        )
        raise DataError(
            f"{source} must be the folder of NUS-WIDE, or one of its files {files}; got another "
            "path. Keep the names of the folders and files."
        )
    has_folder = source.parent.name in (LIST_FOLDER, TAG_FOLDER)
    file = source if has_folder else Path(os.path.abspath(source))
    return file.parent.parent, *found


def _read_nuswide_part(
    folder: Path, split: _Split, *, has_tags: bool
) -> tuple[list[str], list[str], Array]:
    """Return the images, the labels and the targets of a part of the images, ``(n, c)``."""
    image_list = folder / LIST_FOLDER / split.images
    images = _read_nuswide_images(image_list)
    if has_tags:
        columns = _read_nuswide_names(folder, TAGS, TAG_FOLDER)
        file = folder / TAG_FOLDER / split.tags
        return images, columns, _read_tag_matrix(file, image_list, columns, images)
    columns = _read_nuswide_names(folder, CONCEPTS, "ConceptsList")
    targets: Array = mapped_zeros((len(images), len(columns)), np.float64)
    for column, concept in enumerate(columns):
        file = folder / split.targets.format(concept)
        targets[:, column] = _read_concept_targets(file, image_list, len(images))
    return images, columns, targets


def _read_nuswide_lines(file: Path) -> list[str]:
    """Return the lines of a file without surrounding spaces and without empty lines at the end."""
    return [line.strip() for line in read_text(file).rstrip().split("\n")]


def _read_nuswide_images(file: Path) -> list[str]:
    images = [line.replace("\\", "/") for line in _read_nuswide_lines(file)]
    for number, image in enumerate(images, start=1):
        check_relative_image_path(f"{file}, line {number}", image)
    return images


def _read_nuswide_names(folder: Path, name: str, subfolder: str) -> list[str]:
    """Return the labels of the list of concepts or tags, which have one line each.

    Raises:
        DataError: If the file is missing, or if a label is empty, is repeated, or cannot be a part
            of a file name.
    """
    files = [folder / name, folder / subfolder / name]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise DataError(
            f"{folder} must contain {name} or {subfolder}/{name}; both are missing. Add the file, "
            "which has one label on each line."
        )
    lines: dict[str, int] = {}
    for number, label in enumerate(_read_nuswide_lines(file), start=1):
        is_invalid = not label or "/" in label or "\\" in label or has_control_character(label)
        if is_invalid or label in lines:
            again = f", which is also on line {lines[label]}" if label in lines else ""
            raise DataError(
                f"{file}, line {number}: expected a label without /, \\ and control characters, "
                f"once in the file; got {quote_of_file(label)}{again}. Correct the line."
            )
        lines[label] = number
    return list(lines)


def _read_concept_targets(file: Path, image_list: Path, n_images: int) -> Array:
    """Return the targets of one concept, ``(n,)``.

    Raises:
        DataError: If a line is neither 0 nor 1, or the number of lines differs from ``n_images``.
    """
    lines = _read_nuswide_lines(file)
    if not {"0", "1"}.issuperset(lines):
        number, line = next(
            (number, line) for number, line in enumerate(lines, start=1) if line not in ("0", "1")
        )
        raise DataError(
            f"{file}, line {number}: the target of an image must be 0 or 1; got "
            f"{quote_of_file(line)}. Correct the line."
        )
    if len(lines) != n_images:
        raise DataError(
            f"{file} must have one line for each image of {image_list}; got "
            f"{format_count(len(lines), 'line')} and {format_count(n_images, 'image')}. "
            f"{_COPY_AGAIN}"
        )
    return np.array([line == "1" for line in lines], np.float64)


def _read_tag_matrix(
    file: Path, image_list: Path, columns: Sequence[str], images: Sequence[str]
) -> Array:
    """Return the targets of the tags, ``(n, c)``, from one line of 0 and 1 for each image.

    Raises:
        DataError: If a value is neither 0 nor 1, or if the number of lines or values differs.
    """
    targets: Array = mapped_zeros((len(images), len(columns)), np.float64)
    n_lines = 0
    with open_lines(file) as lines:
        for number, line in enumerate(lines, start=1):
            values = line.split()
            if not values and n_lines == len(images):
                continue  # an empty line at the end
            n_lines += 1
            if len(values) != len(columns) or not {"0", "1"}.issuperset(values):
                invalid = next((value for value in values if value not in ("0", "1")), None)
                got = format_count(len(values), "value")
                got += "" if invalid is None else f", one of which is {quote_of_file(invalid)}"
                raise DataError(
                    f"{file}, line {number}: expected {format_count(len(columns), 'value')}, each "
                    f"0 or 1; got {got}. Correct the line."
                )
            if n_lines <= len(images):
                targets[n_lines - 1] = [value == "1" for value in values]
    if n_lines != len(images):
        raise DataError(
            f"{file} must have one line for each image of {image_list}; got "
            f"{format_count(n_lines, 'line')} and {format_count(len(images), 'image')}. "
            f"{_COPY_AGAIN}"
        )
    return targets
