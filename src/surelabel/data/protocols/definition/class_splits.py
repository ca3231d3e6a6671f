"""Read images with one class each: CoOp's JSON lists, text lists, and one folder for each class."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from surelabel.arrays import Array
from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import open_lines, quote_of_file, read_json
from surelabel.mapped_arrays import mapped_zeros

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png"})
_RESTORE = "Restore the official file."


def read_class_split_json(file: Path, images: str, split: str) -> ProtocolRows:
    """Return the images of a split of CoOp: ``{"train": [[path, class number, class], …], …}``.

    The labels are the classes of all splits in the order of their numbers.

    Args:
        file: Path of the file ``split_zhou_….json``.
        images: Folder of the images, relative to the folder of the file.
        split: Key of the split: ``train``, ``val`` or ``test``.

    Raises:
        DataError: If the file is damaged, or if a class has two numbers or two names.
    """
    content = read_json(file, kind="a JSON file of CoOp", remedy=_RESTORE)
    if not isinstance(content, dict) or not isinstance(content.get(split), list):
        raise DataError(
            f"{file} must be a JSON object with the list {split}; it is missing. {_RESTORE}"
        )
    name_of: dict[int, str] = {}
    rows: list[tuple[str, int]] = []
    for key, entries in content.items():
        if not isinstance(entries, list):
            raise DataError(f"{file}: {key} must be a list of images. {_RESTORE}")
        for position, entry in enumerate(entries):
            place = f"{file}, {key}, entry {position}"
            path, number, name = _read_class_entry(place, entry)
            if name_of.setdefault(number, name) != name:
                raise DataError(
                    f"{place}: the class {number} must have one name; got {quote_of_file(name)} "
                    f"and {quote_of_file(name_of[number])}. {_RESTORE}"
                )
            if key == split:
                rows.append((f"{images}/{path}", number))
    numbers = sorted(name_of)
    names = [name_of[number] for number in numbers]
    check_distinct_classes(str(file), names)
    columns = {number: column for column, number in enumerate(numbers)}
    return rows_of_classes([path for path, _ in rows], [columns[n] for _, n in rows], names)


def _read_class_entry(place: str, entry: object) -> tuple[str, int, str]:
    """Return the path of an image, the number of its class and the name of its class.

    Raises:
        DataError: If the entry is invalid.
    """
    values = entry if isinstance(entry, list) and len(entry) == 3 else [None, None, None]
    path, number, name = values
    if not isinstance(path, str) or type(number) is not int or not isinstance(name, str):
        raise DataError(
            f"{place}: expected the path, the number of the class and the class; got "
            f"{quote_of_file(entry)}. {_RESTORE}"
        )
    check_relative_image_path(place, path)
    return path, number, name


def check_distinct_classes(place: str, names: Sequence[str]) -> None:
    """Check that there are classes, and that they have different names.

    Args:
        place: Place of the classes in messages.
        names: Names of the classes.

    Raises:
        DataError: If there is no class, or if a name is empty or repeated.
    """
    repeated = sorted({name for name in names if names.count(name) > 1 or not name.strip()})
    if not names or repeated:
        got = quote_of_file(repeated[0]) if repeated else "no class"
        raise DataError(f"{place}: classes must have different names; got {got}. {_RESTORE}")


def rows_of_classes(
    images: Sequence[str], columns: Sequence[int], names: Sequence[str]
) -> ProtocolRows:
    """Return images with one positive label each.

    Args:
        images: Paths of the images, length n.
        columns: Column of the class of each image, length n.
        names: Classes, length c.
    """
    targets: Array = mapped_zeros((len(images), len(names)), np.float32)
    targets[np.arange(len(images)), np.asarray(columns, dtype=np.intp)] = 1.0
    return ProtocolRows(images, names, targets)


def read_text_lines(file: Path) -> list[tuple[int, str]]:
    """Return the lines of a text file that are not empty, with their numbers.

    Raises:
        DataError: If the file cannot be read, or if it is empty.
    """
    with open_lines(file) as lines:
        texts = [(number, line.strip()) for number, line in enumerate(lines, start=1)]
    kept = [(number, text) for number, text in texts if text]
    if not kept:
        raise DataError(f"{file} must contain at least one line; got none. {_RESTORE}")
    return kept


def read_class_folders(
    folder: Path, images: str, folder_names: Iterable[str], names: Sequence[str]
) -> ProtocolRows:
    """Return the images of a folder with one subfolder for each class.

    Args:
        folder: Folder of the dataset.
        images: Folder with the subfolders, relative to ``folder``.
        folder_names: Name of the subfolder of each class, length c. Subfolders may be missing.
        names: Classes, length c.

    Raises:
        DataError: If there is another subfolder, or if there is no image.
    """
    columns = {name: column for column, name in enumerate(folder_names)}
    paths, of_paths = list[str](), list[int]()
    for subfolder in sorted(path for path in (folder / images).iterdir() if path.is_dir()):
        if subfolder.name not in columns:
            raise DataError(
                f"{subfolder} must be the folder of a class; got another name than those of "
                f"{len(columns):,} classes. Move the folder."
            )
        for path in sorted(subfolder.iterdir()):
            if path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith("."):
                paths.append(f"{images}/{subfolder.name}/{path.name}")
                of_paths.append(columns[subfolder.name])
    if not paths:
        raise DataError(f"{folder / images} must contain images; got none. Add the images.")
    return rows_of_classes(paths, of_paths, names)
