"""Define the evaluation protocol of TailorCLIP on Pascal VOC 2007: train, evaluated on val."""

from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.voc_image_sets import LABELS, read_voc_split, voc_files

_SOURCE = "datasets of the repository of TailorCLIP"

VOC07_VAL = EvaluationProtocol(
    title="Pascal VOC 2007, train and val",
    task="labels",
    labels=LABELS,
    label_source="the image sets of Pascal VOC, in alphabetical order",
    splits=(
        ProtocolSplit("train", "train", SourcedCount(2501, _SOURCE)),
        ProtocolSplit("val", "test", SourcedCount(2510, _SOURCE)),
    ),
    files=voc_files("VOCtrainval_06-Nov-2007.tar of the PASCAL VOC website", ("train", "val")),
    read_split=read_voc_split,
    metrics={"mean_average_precision": {}},
    comparisons=("calibrated", "label-free", "prompts", "supervised"),
    notes=(
        "TailorCLIP evaluates on val; other papers train on trainval and evaluate on test, which "
        "is the evaluation protocol voc07.",
        "A label whose objects are all marked difficult is negative, as in TailorCLIP; the "
        "official evaluation leaves it out.",
    ),
)
