"""Define the evaluation protocol of NUS-WIDE with 81 concepts."""

from pathlib import Path
from typing import Literal

from surelabel.data.labels.nuswide import read_nuswide_targets
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.nuswide_layout import (
    IMAGE_RULE,
    IMAGES,
    VOCABULARY,
    nuswide_files,
    nuswide_splits,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the concepts of the images of a split; see ``data/labels/nuswide.py``."""
    part: Literal["train", "test"] = "train" if split.role == "train" else "test"
    images, names, targets = read_nuswide_targets(folder, part)
    return ProtocolRows([f"{IMAGES}/{image}" for image in images], names, targets)


NUSWIDE_81 = EvaluationProtocol(
    title="NUS-WIDE, 81 concepts",
    task="labels",
    labels=VOCABULARY.unseen,
    label_source="Concepts81.txt of NUS-WIDE",
    splits=nuswide_splits(
        "all images, also those without a concept",
        SourcedCount(60_260, "akang-wang/PIAA, imageset/nuswideval_labels.txt"),
    ),
    files=nuswide_files(has_tags=False),
    read_split=_read_split,
    metrics={"mean_average_precision": {}},
    comparisons=("calibrated", "label-free", "prompts", "supervised"),
    notes=(
        IMAGE_RULE,
        "Papers also use versions without the images that have no concept; their lists and counts "
        "are not verified.",
    ),
)
