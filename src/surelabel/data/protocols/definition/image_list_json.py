"""Read the lists of images of the RAM repository: a JSON file with images, labels and classes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surelabel.counts import format_count
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file, read_json

_RESTORE = "Restore the official file."


def read_image_list(file: Path, classes: Sequence[str]) -> ProtocolRows:
    """Return the annotations of a list of images, with the file names of the images as paths.

    The published paths are absolute paths of another computer, so only their last part is used. A
    label is repeated for each object. An image without labels is negative for all classes. Labels
    that are not among the classes of the file are ignored, as in the code of RAM, and are a defect.

    Args:
        file: JSON file ``{"images": [[path, [label, ...]], ...], "classes": [label, ...]}``.
        classes: Labels of the columns. The classes of the file must be equal, in any order.

    Raises:
        DataError: If the file is invalid, has other classes, or has no image or an image twice.
    """
    content = read_json(file, kind="a list of images in JSON", remedy=_RESTORE)
    if not isinstance(content, dict) or not {"images", "classes"} <= content.keys():
        raise DataError(
            f"{file} must be one JSON object with images and classes; got "
            f"{quote_of_file(content)}. {_RESTORE}"
        )
    _check_classes(file, content["classes"], classes)
    entries = content["images"]
    if not isinstance(entries, list) or not entries:
        raise DataError(
            f"{file}: images must be a list with at least one image; got {quote_of_file(entries)}. "
            f"{_RESTORE}"
        )
    column = {name: number for number, name in enumerate(classes)}
    images, ignored = [], []
    targets = np.zeros((len(entries), len(classes)))
    for row, entry in enumerate(entries):
        image, labels = _image_and_labels(file, row, entry)
        images.append(image)
        ignored += [label for label in labels if label not in column]
        targets[row, [column[label] for label in labels if label in column]] = 1.0
    defects = []
    if ignored:
        defects = [
            f"{file.name} has {format_count(len(ignored), 'object')} with a label that is no class "
            f"of the file, such as {quote_of_file(ignored[0])}; these labels are ignored."
        ]
    return ProtocolRows(images, tuple(classes), targets, defects=defects)


def _check_classes(file: Path, found: object, expected: Sequence[str]) -> None:
    """Check that a file has the expected classes, in any order.

    Raises:
        DataError: If a class is missing, unknown or repeated.
    """
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise DataError(
            f"{file}: classes must be a list of labels; got {quote_of_file(found)}. {_RESTORE}"
        )
    missing, unknown = sorted({*expected} - {*found}), sorted({*found} - {*expected})
    if missing or unknown or len(found) > len(expected):
        first = f"without {missing[0]!r}" if missing else f"with {quote_of_file(unknown or found)}"
        raise DataError(
            f"{file}: classes must be the {len(expected)} labels of the protocol, each once; got "
            f"{format_count(len(found), 'class', 'classes')}, {first}. {_RESTORE}"
        )


def _image_and_labels(file: Path, row: int, entry: object) -> tuple[str, list[str]]:
    """Return the file name of an image and its labels.

    Raises:
        DataError: If the entry is not a path with a list of labels.
    """
    place = f"{file}: images[{row}]"
    if not isinstance(entry, list) or len(entry) != 2:
        raise DataError(
            f"{place} must be a path and a list of labels; got {quote_of_file(entry)}. {_RESTORE}"
        )
    path, labels = entry
    name = path.replace("\\", "/").rsplit("/", 1)[-1] if isinstance(path, str) else ""
    if not name or name.startswith(".") or "\0" in name:
        raise DataError(
            f"{place} must have the path of an image; got {quote_of_file(path)}. {_RESTORE}"
        )
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise DataError(
            f"{place} must have a list of labels; got {quote_of_file(labels)}. {_RESTORE}"
        )
    return name, labels
