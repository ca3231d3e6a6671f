"""Define the open-vocabulary evaluation protocol of RAP version 1: attributes of pedestrians."""

from pathlib import Path

from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.data.protocols.definition.annotation_defects import (
    identical_labels,
    labels_outside_frequency,
)
from surelabel.data.protocols.definition.attribute_labels import attribute_labels
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.matlab_files import (
    binary_targets,
    cells_of,
    read_matlab_file,
    row_numbers,
    structure_fields,
    texts_of_cells,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows

_ANNOTATIONS, _IMAGES = "RAP_annotation/RAP_annotation.mat", "RAP_dataset"
_VARIABLE = "RAP_annotation"
_PARTITIONS, _TARGETS, _PATHS, _NAMES = 0, 1, 5, 6  # positions of the fields
_FIELDS = 7
_LABELS = attribute_labels("rap")
_SOURCE = "script/dataset/transform_rap.py of dangweili/pedestrian-attribute-recognition-pytorch"
_ORIGIN = "rap.idealtest.org, by request"


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the first 51 attributes of the images of a split of the first partition.

    Raises:
        DataError: If the file is damaged, or if a field is missing or invalid.
    """
    file = folder / _ANNOTATIONS
    place = f"{file}, {_VARIABLE}"
    fields = structure_fields(place, read_matlab_file(file, [_VARIABLE])[_VARIABLE], _FIELDS)
    attributes = texts_of_cells(f"{place}, attributes", fields[_NAMES])[: len(_LABELS.names)]
    names = _LABELS.match(f"{place}, attributes", attributes)
    paths = texts_of_cells(f"{place}, images", fields[_PATHS])
    targets = binary_targets(f"{place}, targets", fields[_TARGETS], len(paths), len(names))
    partition = cells_of(f"{place}, partitions", fields[_PARTITIONS])[0]
    parts = structure_fields(f"{place}, partition 1", partition, 2)
    numbers = parts[0 if split.role == "train" else 1]
    rows = row_numbers(f"{place}, partition 1, {split.name}", numbers, len(paths))
    for row in rows:
        check_relative_image_path(f"{place}, images, cell {row + 1}", paths[row])
    known = list(identical_labels(names, targets[rows]))
    if split.role == "train":
        known += labels_outside_frequency(names, targets[rows], _LABELS.groups["seen"])
    images = [f"{_IMAGES}/{paths[row]}" for row in rows]
    return ProtocolRows(images, names, targets[rows], known_defects=known)


RAP = EvaluationProtocol(
    title="RAP version 1",
    task="labels",
    labels=_LABELS.names,
    label_source="the first 51 attributes of RAP_annotation.mat",
    splits=(
        ProtocolSplit(
            "train",
            "train",
            SourcedCount(33_268, f"41,585 images of {_SOURCE}, without the test images"),
            rule="first of the five partitions",
        ),
        ProtocolSplit(
            "test",
            "test",
            SourcedCount(8_317, "EricTan7/RAM, datasets/json/RAP/test.json"),
            rule="first of the five partitions",
        ),
    ),
    files=(
        ProtocolFile(_ANNOTATIONS, "attributes, images, targets and partitions", _ORIGIN),
        ProtocolFile(_IMAGES, "images", _ORIGIN),
    ),
    read_split=_read_split,
    metrics={"f1_at_k": {"k": 3}, "mean_average_precision": {}},
    comparisons=("open-vocabulary", "supervised"),
    groups=_LABELS.groups,
    notes=(
        "The fields of RAP_annotation are read by position, as in the script transform_rap.py.",
        "Which of the five partitions Recover And Match (RAM) uses is not verified.",
        "The 35 most frequent labels are seen, as in RAM, Appendix B, which does not name them; "
        "the check compares the list with the training images.",
        "The frequencies of Tight and Hand Bag are almost equal: Tight is seen here, and Hand Bag "
        "is more frequent in datasets/json/RAP/test.json of EricTan7/RAM.",
        "In this JSON file, Skirt, Short Skirt and Dress are identical in all 8,317 images; the "
        "check reports such labels.",
        "RAM, Table 8, states 25K training images; this number agrees with the training images "
        "without an unseen label, a rule that the paper does not state.",
        "The misspelt labels Pusing and Other Attchment are Pushing and Other Attachment; SSBag is "
        "Single Shoulder Bag.",
    ),
)
