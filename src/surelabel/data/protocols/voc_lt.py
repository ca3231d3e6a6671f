"""Define the evaluation protocol of VOC-LT: a long-tailed part of Pascal VOC 2012."""

from dataclasses import replace
from pathlib import Path

from surelabel.data.protocols.coco_lt import LONG_TAIL_RULE, rows_of_list
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.data.protocols.definition.voc_image_sets import LABELS, read_voc_split, voc_files

_FOLDERS = {"trainval": "VOC2012", "test": "VOC2007"}
_LIST = "longtail2012/img_id.txt"
_SOURCE = "wutong16/DistributionBalancedLoss, appendix/VOCdevkit/longtail2012/img_id.txt"


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the annotations of the images of the list of VOC 2012, or of VOC 2007 test."""
    part = _FOLDERS[split.name]
    rows = read_voc_split(folder / part, split)
    images = [f"{part}/{image}" for image in rows.images]
    rows = replace(rows, images=images)
    if split.role == "test":
        return rows
    return rows_of_list(folder / _LIST, rows, f"{part}/JPEGImages")


VOC_LT = EvaluationProtocol(
    title="VOC-LT",
    task="labels",
    labels=LABELS,
    label_source="the image sets of Pascal VOC, in alphabetical order",
    splits=(
        ProtocolSplit(
            "trainval", "train", SourcedCount(1_142, _SOURCE), rule="images of the published list"
        ),
        ProtocolSplit("test", "test"),
    ),
    files=(
        ProtocolFile(_LIST, "list of training images", _SOURCE),
        *(
            replace(file, path=f"{part}/{file.path}")
            for split, part in _FOLDERS.items()
            for file in voc_files(f"Pascal {part} of the PASCAL VOC website", (split,))
        ),
    ),
    read_split=_read_split,
    metrics={"mean_average_precision": {}},
    notes=(
        LONG_TAIL_RULE,
        "The files of the repository give 6 head, 6 medium and 8 tail labels; which labels these "
        "are is not verified here.",
        "The test on the images of VOC 2007 is not verified.",
    ),
)
