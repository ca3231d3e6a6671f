"""Define the evaluation protocol of COCO Captions, with the relevance of ECCV Caption and CxC."""

from dataclasses import replace
from pathlib import Path

from surelabel.counts import format_count
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.karpathy_captions import (
    ARCHIVE,
    CAPTION_RULE,
    read_karpathy_split,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.data.relevance_files import read_relevance

CAPTIONS = "dataset_coco.json"
IMAGE_FOLDERS = {"train2014": "train2014", "val2014": "val2014"}
RELEVANCE_FILES = {  # relevant captions of images, and relevant images of captions
    name: (
        f"eccv_caption/{name}_image_to_caption.json",
        f"eccv_caption/{name}_caption_to_image.json",
    )
    for name in ("original", "eccv", "cxc")
}
PUBLISHED_UNKNOWN_IDS = {"eccv_caption/eccv_image_to_caption.json": {144675, 467259}}

_CATALOGUE = "catalogue of TensorFlow Datasets, coco_captions"


def read_coco_caption_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the captions of a split of COCO, with the ids of the images and captions.

    The optional files ``RELEVANCE_FILES`` refer to the ids of the test images and captions. An id
    in such a file that the test split does not contain is a defect, and is a known defect if the
    published file has it.

    Args:
        folder: Folder with ``dataset_coco.json``, ``train2014`` and ``val2014``.
        split: Split of the evaluation protocol.

    Raises:
        DataError: If the file of captions or a file of relevance is invalid.
    """
    rows = read_karpathy_split(
        folder / CAPTIONS, split.name, folders=IMAGE_FOLDERS, id_key="cocoid"
    )
    if split.role != "test":
        return rows
    images, captions = {*rows.image_ids}, {*rows.caption_ids}
    defects, known_defects = [], []
    for of_images, of_captions in RELEVANCE_FILES.values():
        for path, queries, items in (
            (of_images, images, captions),
            (of_captions, captions, images),
        ):
            unknown = _unknown_ids(folder / path, queries, items)
            known = unknown & PUBLISHED_UNKNOWN_IDS.get(path, set())
            defects += _describe_unknown_ids(path, unknown - known)
            known_defects += _describe_unknown_ids(path, known)
    return replace(rows, defects=defects, known_defects=known_defects)


def _unknown_ids(file: Path, queries: set[int], items: set[int]) -> set[int]:
    """Return the ids of a file of relevance that the test split does not contain.

    Raises:
        DataError: If the file exists and is invalid.
    """
    if not file.exists():
        return set()
    relevant = read_relevance(file)
    return ({*relevant} - queries) | ({id_ for ids in relevant.values() for id_ in ids} - items)


def _describe_unknown_ids(path: str, unknown: set[int]) -> list[str]:
    """Return a sentence if there are unknown ids."""
    if not unknown:
        return []
    return [
        f"{path} has {format_count(len(unknown), 'id')} that the test split does not contain, such "
        f"as {min(unknown)}; they are ignored."
    ]


COCO_CAPTIONS = EvaluationProtocol(
    title="COCO Captions, splits of Karpathy and Li",
    task="captions",
    splits=(
        ProtocolSplit(
            "train",
            "train",
            SourcedCount(113287, f"{_CATALOGUE}: train 82,783 and restval 30,504"),
            rule=f"{CAPTION_RULE}; the parts train and restval",
        ),
        ProtocolSplit("val", "validation", SourcedCount(5000, _CATALOGUE), rule=CAPTION_RULE),
        ProtocolSplit(
            "test",
            "test",
            SourcedCount(5000, "original_image_to_caption.json of ECCV Caption"),
            rule=f"{CAPTION_RULE}: 25,000 captions",
        ),
    ),
    files=(
        ProtocolFile(CAPTIONS, "captions and splits", ARCHIVE),
        ProtocolFile("train2014", "images", "train2014.zip of the COCO website"),
        ProtocolFile("val2014", "images", "val2014.zip of the COCO website"),
    ),
    read_split=read_coco_caption_split,
    comparisons=("similarity",),
    notes=(
        "Optional: the folder eccv_caption with eccv_image_to_caption.json, "
        "eccv_caption_to_image.json, cxc_image_to_caption.json and cxc_caption_to_image.json, from "
        "eccv_caption/data of the repository eccv-caption; their ids are checked.",
        "ECCV Caption has 1,261 image queries and 1,332 caption queries; CxC has 5,000 image "
        "queries and 24,972 caption queries.",
        "Recall on 1,000 images is the mean over five folds of 1,000 consecutive test images.",
        "Some images have more than five captions; papers use five, and ECCV Caption has 25,000 "
        "captions of 5,000 test images.",
    ),
)
