"""Read the image sets of Pascal VOC: one list of images per split, and one list per label."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surelabel.data.protocols.definition.evaluation_protocol import ProtocolFile, ProtocolSplit
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import open_lines, quote_of_file

IMAGE_SETS, IMAGES = "ImageSets/Main", "JPEGImages"
DIFFICULT = 0.0  # target if all objects of a label are marked difficult
LABELS = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)

_TARGETS = {"1": 1.0, "-1": 0.0, "0": DIFFICULT}


def voc_files(archive: str, splits: Sequence[str]) -> tuple[ProtocolFile, ...]:
    """Return the files of the official layout of Pascal VOC.

    Args:
        archive: Name of the published archive, and where it is.
        splits: Names of the splits.
    """
    return (
        *(ProtocolFile(f"{IMAGE_SETS}/{name}.txt", "list of images", archive) for name in splits),
        ProtocolFile(IMAGES, "images", archive),
    )


def read_voc_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the annotations of a split of Pascal VOC.

    The list of a label has the target 1, -1 (negative) or 0 (all objects are difficult) for each
    image. A label whose objects are all difficult is negative.

    Args:
        folder: Folder with ``ImageSets``, ``Annotations`` and ``JPEGImages``.
        split: Split of the evaluation protocol.

    Raises:
        DataError: If a list is missing or invalid, or if the lists contain different images.
    """
    list_file = folder / IMAGE_SETS / f"{split.name}.txt"
    images = [name for name, _ in _read_lines(list_file, has_target=False)]
    targets = np.zeros((len(images), len(LABELS)))
    for column, label in enumerate(LABELS):
        file = folder / IMAGE_SETS / f"{label}_{split.name}.txt"
        rows = _read_lines(file, has_target=True)
        if [name for name, _ in rows] != images:
            raise DataError(
                f"{file} must contain the images of {list_file}, in the same order; got other "
                "images. Restore the official file."
            )
        targets[:, column] = [target for _, target in rows]
    return ProtocolRows([f"{IMAGES}/{name}.jpg" for name in images], LABELS, targets)


def _read_lines(file: Path, *, has_target: bool) -> list[tuple[str, float]]:
    """Return the image and the target of each line.

    Raises:
        DataError: If the file cannot be read, or if a line is invalid.
    """
    rows = []
    with open_lines(file) as lines:
        for number, line in enumerate(lines, start=1):
            if not (fields := line.split()):
                continue
            name, *values = fields
            is_valid = len(values) == has_target and all(value in _TARGETS for value in values)
            if not is_valid or "/" in name or "\\" in name or name.startswith("."):
                expected = "an image and 1, -1 or 0" if has_target else "an image"
                raise DataError(
                    f"{file}, line {number}: expected {expected}; got {quote_of_file(line)}. "
                    "Restore the official file."
                )
            rows.append((name, _TARGETS[values[0]] if values else 0.0))
    return rows
