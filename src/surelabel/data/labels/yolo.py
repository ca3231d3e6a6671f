"""Read YOLO datasets: ``data.yaml`` with the labels, and one ``.txt`` file per image."""

import os
import re
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path

import numpy as np

from surelabel.counts import format_count
from surelabel.data.container_images import readable_image_suffixes
from surelabel.data.labels.resolution.image_resolution import resolve_labelled_images
from surelabel.data.labels.resolution.table_options import TARGET_READINGS, TargetReading
from surelabel.data.labels.resolution.yaml_files import YAML_LIMIT
from surelabel.data.labels.resolution.yolo_description import (
    YoloDescription,
    read_yolo_description,
    resolve_yolo_path,
    resolve_yolo_split_path,
    select_yolo_split,
)
from surelabel.data.text_lists import read_text_list
from surelabel.errors import DataError, InputError
from surelabel.file_readers import open_regular_file, quote_of_file, read_text
from surelabel.mapped_arrays import mapped_zeros
from surelabel.records import LabelledImages

YAML_SUFFIXES = (".yaml", ".yml")

_NAMES_KEY = re.compile(rb"^names[ \t]*:", re.MULTILINE)
_SPLIT_KEY = re.compile(rb"^(?:train|val|validation|test)[ \t]*:", re.MULTILINE)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CLASS = re.compile(r"(\d{1,9})(?:\.0*)?", re.ASCII)  # some programs write the number as 3.0
_BOX_SIZE = 5  # numbers of a line: class, centre, width and height


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    missing: TargetReading | None = None,
    split: str | None = None,
) -> LabelledImages:
    """Read annotated images of a split of a YOLO dataset in the layout of Ultralytics.

    ``data.yaml`` contains the labels in ``names``, a list or a mapping from class numbers. Its keys
    ``train``, ``val`` (or ``validation``) and ``test`` contain the images of each split: a folder,
    a ``.txt`` list of images, or a list of these. The labels of ``images/train/1.jpg`` are in
    ``labels/train/1.txt``: the last folder ``images`` in the path is replaced by ``labels``.
    Without such a folder, the file is beside the image.

    Each line of a ``.txt`` file is an object: its class number, and the coordinates of a box, a
    polygon or a box with keypoints. A class with an object in an image is positive, and all other
    classes are negative. An empty file means that all classes are negative. The targets of an image
    without a ``.txt`` file are unknown, unless ``missing`` is ``negative``.

    Args:
        path: Path of ``data.yaml``, or of a folder that contains this file.
        images_root: Folder to which the paths of the splits are relative. If None, the ``path`` in
            ``data.yaml`` is used, relative to the folder of ``data.yaml``; without ``path``, the
            folder of ``data.yaml``. All images must be inside this folder.
        names: Labels to return, in the order of the columns. If None, the classes are returned in
            the order of their numbers. If a label is not a class, its targets are unknown.
        missing: Meaning of a missing ``.txt`` file: all classes are ``negative`` or ``unknown``. If
            None, the classes are unknown.
        split: Name of the split to read, as in ``data.yaml``. If None, the dataset must have only
            one split.

    Raises:
        DataError: If ``data.yaml`` or a ``.txt`` file is invalid, if a class number has no label,
            if no image has a ``.txt`` file, or if there are several splits and none is chosen. Also
            if a path leaves the folder, if an image does not exist, or if a class is not in
            ``names``. The message contains the file and the line.
        InputError: If an option has an invalid value.
    """
    if missing not in (None, *TARGET_READINGS):
        raise InputError(f"missing must be one of {', '.join(TARGET_READINGS)}; got {missing!r}.")
    source = Path(path)
    file = _find_yolo_description(source) if source.is_dir() else source
    description = read_yolo_description(file, images_root)
    split = select_yolo_split(description, split)
    images = _images_of_split(description, split)
    if not images:
        raise DataError(
            f"{file}: the split {split} must contain images; got none. Check the paths of the "
            "split."
        )
    targets = mapped_zeros((len(images), len(description.names)), np.float64)
    n_missing = n_empty = 0
    for row, image in enumerate(images):
        label_file = yolo_label_path(os.path.join(description.root, image))
        if not os.path.lexists(label_file):
            n_missing += 1
            targets[row] = 0.0 if missing == "negative" else np.nan
            continue
        classes = _read_yolo_classes(label_file, description)
        n_empty += not classes
        targets[row, list(classes)] = 1.0
    if n_missing == len(images):
        raise DataError(
            f"{file}: at least one image of the split {split} must have a .txt file with labels; "
            f"got none for {format_count(len(images), 'image')}. The file of {images[0]} must be "
            f"{yolo_label_path(os.path.join(description.root, images[0]))}."
        )
    return resolve_labelled_images(
        file,
        images,
        description.names,
        targets,
        images_root=description.root,
        names=names,
        reading=_describe_yolo_reading(split, n_missing, n_empty, missing or "unknown"),
    )


def is_yolo_file(file: Path) -> bool:
    """Return True if a file is the description of a YOLO dataset, such as ``data.yaml``.

    The file has the suffix ``.yaml`` or ``.yml``. It contains the key ``names``, and ``train``,
    ``val``, ``validation`` or ``test``, at the start of lines.

    Args:
        file: Path of a file, which may not exist.
    """
    if file.suffix.lower() not in YAML_SUFFIXES or not file.is_file():
        return False
    try:
        with open_regular_file(file) as stream:
            content = stream.read(YAML_LIMIT).removeprefix(_BYTE_ORDER_MARK)
    except DataError:
        return False  # reading the file raises the error
    return bool(_NAMES_KEY.search(content) and _SPLIT_KEY.search(content))


def is_yolo_folder(folder: Path) -> bool:
    """Return True if a folder contains the description of a YOLO dataset; see `is_yolo_file`.

    Args:
        folder: Path of a folder.
    """
    return any(map(is_yolo_file, folder.iterdir()))


def yolo_label_path(image: str) -> str:
    """Return the absolute path of the ``.txt`` file with the labels of an image.

    Args:
        image: Path of the image.

    Example:
        >>> yolo_label_path("/data/images/train/1.jpg")
        '/data/labels/train/1.txt'
    """
    path = os.path.abspath(image)
    before, folder, after = path.rpartition(f"{os.sep}images{os.sep}")
    if folder:
        path = f"{before}{os.sep}labels{os.sep}{after}"
    return f"{os.path.splitext(path)[0]}.txt"


def _find_yolo_description(folder: Path) -> Path:
    files = sorted(filter(is_yolo_file, folder.iterdir()))
    if len(files) != 1:
        got = " and ".join(file.name for file in files) or "no such file"
        raise DataError(
            f"{folder} must contain one data.yaml with names and train, val or test; got {got}. "
            f"{'Give one of these files' if files else 'Add data.yaml'}."
        )
    return files[0]


def _images_of_split(description: YoloDescription, split: str) -> list[str]:
    """Return the images of a split, relative to the folder of the dataset."""
    images: list[str] = []
    for node in description.splits[split]:
        path = resolve_yolo_split_path(description, node)
        if (description.root / path).is_dir():
            images += _walk_yolo_images(description.root, path)
        elif path.lower().endswith(".txt"):
            images += _read_yolo_list(description.root, path)
        else:
            raise DataError(
                f"{description.file}, line {node.line}: expected a folder of images or a .txt list "
                f"of images; got {quote_of_file(node.value)}. Correct the path."
            )
    return images


def _walk_yolo_images(root: Path, folder: str) -> Iterator[str]:
    """Yield the images of a folder and its subfolders, in sorted order, without hidden files."""
    suffixes = readable_image_suffixes()
    for parent, folders, files in os.walk(root / folder, onerror=_raise_unreadable_folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if os.path.splitext(name)[1].lower() in suffixes and not name.startswith("."):
                yield os.path.relpath(os.path.join(parent, name), root)


def _raise_unreadable_folder(error: OSError) -> None:
    raise DataError(
        f"{error.filename} cannot be read: {error.strerror}. Check the permissions of the folder."
    ) from error


def _read_yolo_list(root: Path, path: str) -> list[str]:
    """Return the images of a ``.txt`` list, whose paths are relative to the folder of the list."""
    file = root / path
    return [
        resolve_yolo_path(f"{file}, line {number}", root, os.path.join(os.path.dirname(path), line))
        for number, line in enumerate(read_text_list(file), start=1)
        if line
    ]


def _read_yolo_classes(file: str, description: YoloDescription) -> set[int]:
    """Return the class numbers of the objects in a ``.txt`` file."""
    classes = set()
    text = read_text(file, kind="a YOLO label file", remedy="Correct the file.")
    for number, line in enumerate(text.split("\n"), start=1):
        if not (numbers := line.split()):
            continue
        found = _CLASS.fullmatch(numbers[0])
        if found is None or not _are_yolo_coordinates(numbers[1:]):
            raise DataError(
                f"{file}, line {number}: expected a class number and the coordinates of a box, a "
                f"polygon or a box with keypoints, such as 0 0.5 0.5 0.2 0.3; got "
                f"{quote_of_file(line)}. Correct the line."
            )
        if int(found[1]) >= len(description.names):
            raise DataError(
                f"{file}, line {number}: the class number must be less than "
                f"{len(description.names)}, the number of labels in {description.file}; got "
                f"{found[1]}. Correct the number, or add the label."
            )
        classes.add(int(found[1]))
    return classes


def _are_yolo_coordinates(numbers: Sequence[str]) -> bool:
    """Return True for a box, a polygon, or a box with keypoints of 2 or 3 numbers each.

    The line of a prediction has a confidence after the box, and is not an annotation.
    """
    n_more = len(numbers) + 1 - _BOX_SIZE
    if n_more < 0 or (n_more % 2 and n_more % 3):
        return False
    try:
        return all(isfinite(float(number)) for number in numbers)
    except ValueError:
        return False


def _describe_yolo_reading(split: str, n_missing: int, n_empty: int, missing: str) -> str:
    parts = [f"YOLO dataset, split {split}"]
    if n_empty:
        verb = "has" if n_empty == 1 else "have"
        parts.append(f"{format_count(n_empty, 'image')} with an empty .txt file {verb} no label")
    if n_missing:
        verb = "is" if n_missing == 1 else "are"
        parts.append(f"{format_count(n_missing, 'image')} without a .txt file {verb} {missing}")
    return "; ".join(parts)
