"""Define the evaluation protocol of WIDER Attribute: attributes of persons in images."""

from pathlib import Path

import numpy as np

from surelabel.arrays import Array
from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.data.protocols.definition.class_splits import check_distinct_classes
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file, read_json

_ANNOTATIONS, _IMAGES = "Anno", "Image"
_ORIGIN = "the page of WIDER Attribute, Multimedia Laboratory, CUHK"
_RESTORE = "Restore the official file."
_TARGETS = {1: 1.0, -1: 0.0, 0: np.nan}


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the attributes of the images of a split, over all persons of an image.

    An attribute is positive if a person has it, negative if no person has it and it is specified
    for at least one person, and otherwise unknown.

    Raises:
        DataError: If the file is missing or damaged.
    """
    file = folder / _ANNOTATIONS / f"wider_attribute_{split.name}.json"
    content = read_json(file, kind="a JSON file of WIDER Attribute", remedy=_RESTORE)
    entries = content.get("images") if isinstance(content, dict) else None
    names_of = content.get("attribute_id_map") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries or not isinstance(names_of, dict):
        raise DataError(
            f"{file} must be a JSON object with images and attribute_id_map; got another value. "
            f"{_RESTORE}"
        )
    keys = [str(number) for number in range(len(names_of))]
    if {*keys} != {*names_of} or not all(isinstance(name, str) for name in names_of.values()):
        raise DataError(
            f"{file}: attribute_id_map must have the keys 0 to {len(names_of) - 1}, each with a "
            f"label. {_RESTORE}"
        )
    names = [names_of[key] for key in keys]
    check_distinct_classes(f"{file}, attribute_id_map", names)
    images, targets = list[str](), np.full((len(entries), len(names)), np.nan)
    for row, entry in enumerate(entries):
        place = f"{file}, image {row}"
        name = entry.get("file_name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            raise DataError(
                f"{place}: file_name must be a path; got {quote_of_file(name)}. {_RESTORE}"
            )
        check_relative_image_path(place, name)
        images.append(f"{_IMAGES}/{name}")
        for person in _persons_of(place, entry, len(names)):
            targets[row] = np.fmax(targets[row], person)
    return ProtocolRows(images, names, targets)


def _persons_of(place: str, entry: dict[str, object], n_labels: int) -> list[Array]:
    """Return the targets of each person of an image, ``(c,)``.

    Raises:
        DataError: If a target is not 1, -1 or 0, or if their number differs.
    """
    persons = entry.get("targets")
    if not isinstance(persons, list):
        raise DataError(
            f"{place}: targets must be a list of persons; got another value. {_RESTORE}"
        )
    found = []
    for person in persons:
        values = person.get("attribute") if isinstance(person, dict) else None
        is_list = isinstance(values, list) and len(values) == n_labels
        if not is_list or not all(type(v) is int and v in _TARGETS for v in values or []):
            raise DataError(
                f"{place}: attribute must be {n_labels} numbers, each 1, -1 or 0; got "
                f"{quote_of_file(values)}. {_RESTORE}"
            )
        found.append(np.array([_TARGETS[value] for value in values or []]))
    return found


WIDER_ATTRIBUTE = EvaluationProtocol(
    title="WIDER Attribute",
    task="labels",
    splits=(ProtocolSplit("trainval", "train"), ProtocolSplit("test", "test")),
    files=(
        *(
            ProtocolFile(
                f"{_ANNOTATIONS}/wider_attribute_{name}.json",
                f"persons and attributes of {name}",
                _ORIGIN,
            )
            for name in ("trainval", "test")
        ),
        ProtocolFile(_IMAGES, "images in the folders train, val and test", _ORIGIN),
    ),
    read_split=_read_split,
    metrics={"mean_average_precision": {}},
    notes=(
        "Papers evaluate the boxes of persons. Towards Calibrated Multi-label Deep Neural "
        "Networks, Table 2, states 14 labels, 28,340 training and 29,117 test examples.",
        "Here an image has one row, over all its persons; this rule is ours, and its counts are "
        "not verified.",
        "The format of the JSON files is that of the README of yunpengn/MultiAttrCNN; the labels "
        "are read from attribute_id_map, and the names of the folders are not verified.",
    ),
)
