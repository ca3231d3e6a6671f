"""Define the evaluation protocol of VISPR: attributes of images that concern privacy."""

import re
from pathlib import Path

import numpy as np

from surelabel.data.protocols.definition.evaluation_protocol import (
    NOT_VERIFIED,
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file, read_json

_FOLDERS = {"trainval": ("train2017", "val2017"), "test": ("test2017",)}
_ORIGIN = "the page of Towards a Visual Privacy Advisor (tribhuvanesh/vpa)"
_SOURCE = "Towards Calibrated Multi-label Deep Neural Networks, Table 2"
_ATTRIBUTE = re.compile(r"a(\d+)_\w+")


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the attributes of the images of a split; the labels are those of all splits.

    Raises:
        DataError: If a folder has no JSON file, or if a file is damaged.
    """
    labels_of = {
        name: _read_labels(folder / name) for folders in _FOLDERS.values() for name in folders
    }
    names = sorted(
        {label for images in labels_of.values() for labels in images.values() for label in labels},
        key=lambda label: (int(label[1:].partition("_")[0]), label),
    )
    column_of = {name: column for column, name in enumerate(names)}
    rows = [
        (f"{name}/{image}.jpg", labels)
        for name in _FOLDERS[split.name]
        for image, labels in labels_of[name].items()
    ]
    targets = np.zeros((len(rows), len(names)))
    for row, (_, labels) in enumerate(rows):
        targets[row, [column_of[label] for label in labels]] = 1.0
    return ProtocolRows([image for image, _ in rows], names, targets)


def _read_labels(folder: Path) -> dict[str, list[str]]:
    """Return the labels of each image of a folder, which are in a JSON file of the same name.

    Raises:
        DataError: If there is no JSON file, or if a file has no valid list of labels.
    """
    found = {}
    for file in sorted(folder.glob("*.json")):
        content = read_json(file, kind="a JSON file of VISPR", remedy="Restore the official file.")
        labels = content.get("labels") if isinstance(content, dict) else None
        if not isinstance(labels, list) or not all(
            isinstance(label, str) and _ATTRIBUTE.fullmatch(label) for label in labels
        ):
            raise DataError(
                f"{file}: labels must be a list of attributes such as a0_safe; got "
                f"{quote_of_file(labels)}. Restore the official file."
            )
        found[file.stem] = labels
    if not found:
        raise DataError(
            f"{folder} must contain a JSON file for each image; got none. Add the annotations."
        )
    return found


VISPR = EvaluationProtocol(
    title="VISPR",
    task="labels",
    splits=(
        ProtocolSplit(
            "trainval", "train", NOT_VERIFIED, SourcedCount(14_167, _SOURCE), "train and val"
        ),
        ProtocolSplit("test", "test", NOT_VERIFIED, SourcedCount(8_000, _SOURCE)),
    ),
    files=tuple(
        ProtocolFile(name, "images, and a JSON file of labels for each image", _ORIGIN)
        for folders in _FOLDERS.values()
        for name in folders
    ),
    read_split=_read_split,
    metrics={"mean_average_precision": {}},
    notes=(
        "Papers evaluate 68 labels (the source of the counts); the labels are read from the "
        "folder, and their list is not verified.",
        "The names of the folders are not verified.",
    ),
)
