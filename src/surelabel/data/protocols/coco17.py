"""Define the evaluation protocol of COCO 2017: train2017, evaluated on val2017."""

from surelabel.data.protocols.definition.coco_instances import (
    COCO_LABEL_SOURCE,
    COCO_LABELS,
    WITHOUT_UNLABELLED,
    coco_instance_files,
    read_coco_instance_split,
)
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolSplit,
    SourcedCount,
)

_CONFIGURATION = "data/coco.yaml of the repository yolov5"

COCO17 = EvaluationProtocol(
    title="COCO 2017",
    task="labels",
    labels=COCO_LABELS,
    label_source=COCO_LABEL_SOURCE,
    splits=(
        ProtocolSplit(
            "train2017",
            "train",
            SourcedCount(118287, _CONFIGURATION),
            SourcedCount(117266, "issue 1134 of the repository detectron2"),
            WITHOUT_UNLABELLED,
        ),
        ProtocolSplit(
            "val2017",
            "test",
            SourcedCount(5000, _CONFIGURATION),
            SourcedCount(4952, "imageset/coco2017/val.txt of the repository TagCLIP"),
            WITHOUT_UNLABELLED,
        ),
    ),
    files=coco_instance_files(2017),
    read_split=read_coco_instance_split,
    metrics={"mean_average_precision": {}},
    comparisons=("calibrated", "label-free", "prompts", "supervised"),
    notes=(
        "The labels of the official test split are not public, so papers evaluate on val2017.",
        "Images without a label are left out, as in the list of TagCLIP.",
    ),
)
