"""Define the evaluation protocol of Open Images V6: verified labels of images."""

from collections import Counter
from pathlib import Path

import numpy as np

from surelabel.arrays import Array
from surelabel.data.csv_rows import open_csv_rows
from surelabel.data.labels.resolution.class_descriptions import read_class_descriptions
from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.data.protocols.definition.class_splits import check_distinct_classes, read_text_lines
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.mapped_arrays import mapped_zeros

_CLASSES, _DESCRIPTIONS = "oidv6-classes-trainable.txt", "oidv6-class-descriptions.csv"
_COLUMNS = ["ImageID", "Source", "LabelName", "Confidence"]
_ORIGIN = "storage.googleapis.com/openimages"
_RESTORE = "Restore the official file."


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the verified labels of the images of a split; other labels are unknown.

    Raises:
        DataError: If a file is missing or damaged, or if a class has no description.
    """
    classes = [name for _, name in read_text_lines(folder / _CLASSES)]
    check_distinct_classes(str(folder / _CLASSES), classes)
    descriptions = read_class_descriptions(folder / _DESCRIPTIONS)
    for number, name in enumerate(classes, start=1):
        if name not in descriptions:
            raise DataError(
                f"{folder / _CLASSES}, class {number}: each class must be in {_DESCRIPTIONS}; got "
                f"{quote_of_file(name)}. {_RESTORE}"
            )
    counts = Counter(descriptions[name] for name in classes)
    names = [
        f"{descriptions[name]} ({name})" if counts[descriptions[name]] > 1 else descriptions[name]
        for name in classes
    ]
    file = folder / f"{split.name}-annotations-human-imagelabels.csv"
    column_of = {name: column for column, name in enumerate(classes)}
    row_of, cells = _read_cells(file, column_of)
    targets: Array = mapped_zeros((len(row_of), len(names)), np.float16)
    targets[:] = np.nan
    for row, column, target in cells:
        targets[row, column] = target
    return ProtocolRows([f"{split.name}/{image}.jpg" for image in row_of], names, targets)


def _read_cells(
    file: Path, column_of: dict[str, int]
) -> tuple[dict[str, int], list[tuple[int, int, float]]]:
    """Return the row of each image, and the row, the column and the target of each label.

    Raises:
        DataError: If the header or a row is invalid.
    """
    row_of: dict[str, int] = {}
    cells = []
    with open_csv_rows(file) as rows:
        for line, values in rows:
            if not values or (line == 1 and values == _COLUMNS):
                continue
            if line == 1 or len(values) != len(_COLUMNS) or values[3] not in ("0", "1"):
                raise DataError(
                    f"{file}, line {line}: expected {','.join(_COLUMNS)} with the confidence 0 or "
                    f"1; got {quote_of_file(','.join(values))}. {_RESTORE}"
                )
            image, _, label, confidence = values
            if image not in row_of:
                check_relative_image_path(f"{file}, line {line}", image)
            row = row_of.setdefault(image, len(row_of))
            if label in column_of:
                cells.append((row, column_of[label], float(confidence)))
    if not row_of:
        raise DataError(f"{file} must contain a verified label; got none. {_RESTORE}")
    return row_of, cells


OPENIMAGES_V6 = EvaluationProtocol(
    title="Open Images V6, trainable classes",
    task="labels",
    splits=(ProtocolSplit("validation", "validation"), ProtocolSplit("test", "test")),
    files=(
        ProtocolFile(_CLASSES, "identifiers of the classes", _ORIGIN),
        ProtocolFile(_DESCRIPTIONS, "names of the classes", _ORIGIN),
        *(
            file
            for name in ("validation", "test")
            for file in (
                ProtocolFile(
                    f"{name}-annotations-human-imagelabels.csv", "verified labels", _ORIGIN
                ),
                ProtocolFile(name, "images", _ORIGIN),
            )
        ),
    ),
    read_split=_read_split,
    metrics={"mean_average_precision": {}},
    notes=(
        "A label that was not verified is unknown.",
        "The classes are read from the folder; their list, the counts, the classes and the images "
        "that papers evaluate are not verified. Training images are not checked.",
    ),
)
