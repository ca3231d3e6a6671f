"""Define the open-vocabulary evaluation protocol of PA-100K: attributes of pedestrians."""

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
    read_matlab_file,
    texts_of_cells,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows

_ANNOTATIONS, _IMAGES = "annotation.mat", "data"
_LABELS = attribute_labels("pa100k")
_SOURCE = "dangweili/pedestrian-attribute-recognition-pytorch, script/dataset/transform_pa100k.py"
_ORIGIN = "release of PA-100K by the authors of HydraPlus-Net (xh-liu/HydraPlus-Net)"


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the attributes of the images of a split.

    Raises:
        DataError: If the file is damaged, or if a variable is missing or invalid.
    """
    file = folder / _ANNOTATIONS
    keys = ("attributes", f"{split.name}_images_name", f"{split.name}_label")
    variables = read_matlab_file(file, keys)
    attributes, files, labels = (variables[key] for key in keys)
    names = _LABELS.match(f"{file}, attributes", texts_of_cells(f"{file}, attributes", attributes))
    paths = texts_of_cells(f"{file}, {keys[1]}", files)
    for number, path in enumerate(paths, start=1):
        check_relative_image_path(f"{file}, {keys[1]}, cell {number}", path)
    targets = binary_targets(f"{file}, {keys[2]}", labels, len(paths), len(names))
    known = list(identical_labels(names, targets))
    if split.role == "train":
        known += labels_outside_frequency(names, targets, _LABELS.groups["seen"])
    return ProtocolRows(
        [f"{_IMAGES}/{path}" for path in paths], names, targets, known_defects=known
    )


PA100K = EvaluationProtocol(
    title="PA-100K",
    task="labels",
    labels=_LABELS.names,
    label_source="the attributes of annotation.mat",
    splits=(
        ProtocolSplit("train", "train", SourcedCount(80_000, _SOURCE)),
        ProtocolSplit("val", "validation", SourcedCount(10_000, _SOURCE)),
        ProtocolSplit("test", "test", SourcedCount(10_000, _SOURCE)),
    ),
    files=(
        ProtocolFile(_ANNOTATIONS, "attributes, lists of images and targets", _ORIGIN),
        ProtocolFile(_IMAGES, "images", _ORIGIN),
    ),
    read_split=_read_split,
    metrics={"f1_at_k": {"k": 3}, "mean_average_precision": {}},
    comparisons=("open-vocabulary", "supervised"),
    groups=_LABELS.groups,
    notes=(
        "The 16 most frequent labels are seen, as in Recover And Match (RAM), Appendix B, which "
        "does not name them; the list is computed from datasets/json/PA100K/test.json of "
        "EricTan7/RAM, and the check compares it with the training images.",
        "RAM, Table 8, states 59K training images; this number agrees with the training images "
        "without an unseen label, a rule that the paper does not state.",
        "RAM also reports F1 at 5 labels for each image.",
    ),
)
