"""Define the evaluation protocol of COCO 2014: train2014, evaluated on val2014."""

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

_CATALOGUE = "catalogue of TensorFlow Datasets, coco/2014"
_TABLE = "Towards Calibrated Multi-label Deep Neural Networks, Table 2"

COCO14 = EvaluationProtocol(
    title="COCO 2014",
    task="labels",
    labels=COCO_LABELS,
    label_source=COCO_LABEL_SOURCE,
    splits=(
        ProtocolSplit(
            "train2014",
            "train",
            SourcedCount(82783, _CATALOGUE),
            SourcedCount(82081, _TABLE),
            WITHOUT_UNLABELLED,
        ),
        ProtocolSplit(
            "val2014",
            "test",
            SourcedCount(40504, _CATALOGUE),
            SourcedCount(40137, _TABLE),
            WITHOUT_UNLABELLED,
        ),
    ),
    files=coco_instance_files(2014),
    read_split=read_coco_instance_split,
    metrics={"mean_average_precision": {}},
    comparisons=("calibrated", "label-free", "prompts", "supervised"),
    notes=(
        "The labels of the official test split are not public, so papers evaluate on val2014.",
        "Images without a label are left out, as in the lists of PIAA and TailorCLIP.",
        "TailorCLIP sorts the labels alphabetically, and uses other names, such as aeroplane for "
        "airplane, motorbike for motorcycle, sofa for couch, and necktie for tie.",
    ),
)
