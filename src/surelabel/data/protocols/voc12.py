"""Define the evaluation protocol of Pascal VOC 2012: train, evaluated on val."""

from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.voc_image_sets import LABELS, read_voc_split, voc_files

_SOURCE = "Towards Calibrated Multi-label Deep Neural Networks, Table 2"

VOC12 = EvaluationProtocol(
    title="Pascal VOC 2012",
    task="labels",
    labels=LABELS,
    label_source="the image sets of Pascal VOC, in alphabetical order",
    splits=(
        ProtocolSplit("train", "train", SourcedCount(5717, _SOURCE)),
        ProtocolSplit("val", "test", SourcedCount(5823, _SOURCE)),
    ),
    files=voc_files("VOCtrainval_11-May-2012.tar of the PASCAL VOC website", ("train", "val")),
    read_split=read_voc_split,
    metrics={"mean_average_precision": {}},
    comparisons=("calibrated", "label-free", "prompts", "supervised"),
    notes=(
        "The labels of the official test split are not public, so papers evaluate on val.",
        "A label whose objects are all marked difficult is negative, as in TailorCLIP; the "
        "official evaluation leaves it out.",
    ),
)
