"""Define the evaluation protocol of COCO-LT: a long-tailed part of COCO 2017."""

from dataclasses import replace
from pathlib import Path

from surelabel.data.protocols.coco17 import COCO17
from surelabel.data.protocols.definition.class_splits import read_text_lines
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

LONG_TAIL_RULE = (
    "Labels with at least 100 training images are head, with 20 to 99 medium, and with fewer tail, "
    "as in tools/create_longtail_dataset.py of wutong16/DistributionBalancedLoss."
)
TRAIN_LIST = "coco_lt_train.txt"

_SOURCE = "wutong16/DistributionBalancedLoss, appendix/coco/longtail2017/img_id.pkl"


def rows_of_list(file: Path, rows: ProtocolRows, images: str) -> ProtocolRows:
    """Return the rows of the images of a list, in the order of ``rows``.

    Args:
        file: Text file with the name of an image without suffix on each line.
        rows: Annotations of all images.
        images: Folder of the images, relative to the folder of the dataset.

    Raises:
        DataError: If a line is repeated, or if an image is not in ``rows``.
    """
    row_of = {image: row for row, image in enumerate(rows.images)}
    lines: dict[int, int] = {}
    for number, name in read_text_lines(file):
        row = row_of.get(f"{images}/{name}.jpg")
        if row is None or row in lines:
            expected = "an image of the annotations" if row is None else "an image once"
            raise DataError(
                f"{file}, line {number}: expected {expected}; got {quote_of_file(name)}. Restore "
                "the official list."
            )
        lines[row] = number
    return rows.take(sorted(lines))


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the annotations of the images of the list, or of val2017."""
    rows = COCO17.read_split(folder, split)
    if split.role == "test":
        return rows
    return rows_of_list(folder / TRAIN_LIST, rows, split.name)


COCO_LT = EvaluationProtocol(
    title="COCO-LT",
    task="labels",
    labels=COCO17.labels,
    label_source=COCO17.label_source,
    splits=(
        ProtocolSplit(
            "train2017", "train", SourcedCount(1_909, _SOURCE), rule="images of the published list"
        ),
        replace(COCO17.split("val2017")),
    ),
    files=(
        ProtocolFile(
            TRAIN_LIST,
            "name of an image without suffix on each line, such as 000000000009",
            f"{_SOURCE}, written as text, because pickle files are not read",
        ),
        *COCO17.files,
    ),
    read_split=_read_split,
    metrics={"mean_average_precision": {}},
    notes=(
        LONG_TAIL_RULE,
        "The files of the repository give 22 head, 33 medium and 25 tail labels; which labels "
        "these are is not verified here.",
    ),
)
