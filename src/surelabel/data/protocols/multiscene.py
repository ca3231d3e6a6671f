"""Define the open-vocabulary evaluation protocol of MultiScene-Clean: scenes in aerial images."""

from pathlib import Path

from surelabel.data.protocols.definition.annotation_defects import identical_labels
from surelabel.data.protocols.definition.attribute_labels import attribute_labels
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.data.protocols.definition.target_tables import read_target_table

_IMAGES = "images"
_FILES = {"train": "Tra.csv", "test": "Test.csv"}
_LABELS = attribute_labels("multiscene")
_ORIGIN = "release of MultiScene-Clean (Hua-YS/Multi-Scene-Recognition)"


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the scenes of the images of a split.

    Raises:
        DataError: If the file is missing or invalid, or if it has other labels.
    """
    table = read_target_table(folder / _FILES[split.name])
    names = _LABELS.match(table.place_of_names, table.names)
    targets = table.targets
    return ProtocolRows(
        [f"{_IMAGES}/{image}.jpg" for image in table.images],
        names,
        targets,
        known_defects=list(identical_labels(names, targets)),
    )


MULTISCENE = EvaluationProtocol(
    title="MultiScene-Clean",
    task="labels",
    labels=_LABELS.names,
    label_source="the columns of Tra.csv and Test.csv",
    splits=(
        ProtocolSplit(
            "train",
            "train",
            SourcedCount(7_000, "EricTan7/RAM, datasets/json/MultiScene/train.json"),
        ),
        ProtocolSplit(
            "test",
            "test",
            SourcedCount(7_000, "EricTan7/RAM, datasets/json/MultiScene/test.json"),
        ),
    ),
    files=(
        ProtocolFile("Tra.csv", "training images and targets", _ORIGIN),
        ProtocolFile("Test.csv", "test images and targets", _ORIGIN),
        ProtocolFile(_IMAGES, "images", _ORIGIN),
    ),
    read_split=_read_split,
    metrics={"f1_at_k": {"k": 3}, "mean_average_precision": {}},
    comparisons=("open-vocabulary", "supervised"),
    groups=_LABELS.groups,
    notes=(
        "The 20 seen and 16 unseen labels of Recover And Match (RAM) are not published. The split "
        "is ours: labels at the first 16 positions of numpy.random.default_rng(0).permutation(36) "
        "are unseen.",
        "RAM, Table 8, states 24K training images; its published list has the 7,000 training "
        "images of MultiScene-Clean.",
        "The misspelt labels OilFiled, SolarPannel and WindTrubine are Oil Field, Solar Panel and "
        "Wind Turbine.",
        "RAM also reports F1 at 5 labels for each image.",
    ),
)
