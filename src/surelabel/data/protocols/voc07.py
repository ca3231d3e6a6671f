"""Define the evaluation protocol of Pascal VOC 2007: trainval, evaluated on test."""

from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.voc_image_sets import (
    IMAGE_SETS,
    IMAGES,
    LABELS,
    read_voc_split,
)

_TRAIN_ARCHIVE = "VOCtrainval_06-Nov-2007.tar of the PASCAL VOC website"
_TEST_ARCHIVE = "VOCtest_06-Nov-2007.tar of the PASCAL VOC website"

VOC07 = EvaluationProtocol(
    title="Pascal VOC 2007",
    task="labels",
    labels=LABELS,
    label_source="the image sets of Pascal VOC, in alphabetical order",
    splits=(
        ProtocolSplit(
            "trainval",
            "train",
            SourcedCount(
                5011, "VOC2007/trainval.csv of the repository multi-label-image-classification"
            ),
        ),
        ProtocolSplit("test", "test", SourcedCount(4952, "data/VOC.yaml of the repository yolov5")),
    ),
    files=(
        ProtocolFile(f"{IMAGE_SETS}/trainval.txt", "list of images", _TRAIN_ARCHIVE),
        ProtocolFile(f"{IMAGE_SETS}/test.txt", "list of images", _TEST_ARCHIVE),
        ProtocolFile(IMAGES, "images", f"{_TRAIN_ARCHIVE}, and {_TEST_ARCHIVE}"),
    ),
    read_split=read_voc_split,
    metrics={"mean_average_precision": {}},
    comparisons=("calibrated", "label-free", "prompts", "supervised"),
    notes=(
        "CDUL, TagCLIP and DualCoOp train on trainval and evaluate on test; TailorCLIP trains on "
        "train and evaluates on val, which is the evaluation protocol voc07-val.",
        "A label whose objects are all marked difficult is negative, as in TaI-DPT; the official "
        "evaluation leaves it out.",
    ),
)
