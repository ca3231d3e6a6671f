"""Read the official instance annotations of COCO, without the images that have no label."""

from pathlib import Path

import numpy as np

from surelabel.data.coco_json import (
    coco_annotation_indices,
    coco_category_names,
    coco_values_by_id,
    read_coco_json,
)
from surelabel.data.protocols.definition.evaluation_protocol import ProtocolFile, ProtocolSplit
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

ANNOTATIONS = "annotations"
COCO_LABELS = (
    *("person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat"),
    *("traffic light", "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat"),
    *("dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe", "backpack"),
    *("umbrella", "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard", "sports ball"),
    *("kite", "baseball bat", "baseball glove", "skateboard", "surfboard", "tennis racket"),
    *("bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple"),
    *("sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair"),
    *("couch", "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "mouse"),
    *("remote", "keyboard", "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator"),
    *("book", "clock", "vase", "scissors", "teddy bear", "hair drier", "toothbrush"),
)
COCO_LABEL_SOURCE = "the categories of COCO, in the order of their ids"
WITHOUT_UNLABELLED = "images with at least one label"


def coco_instance_files(year: int) -> tuple[ProtocolFile, ...]:
    """Return the files of the official layout of COCO with the splits train and val.

    Args:
        year: Year of the release: 2014 or 2017.
    """
    archive = f"annotations_trainval{year}.zip of the COCO website"
    return tuple(
        file
        for split in (f"train{year}", f"val{year}")
        for file in (
            ProtocolFile(f"{ANNOTATIONS}/instances_{split}.json", "annotated objects", archive),
            ProtocolFile(split, "images", f"{split}.zip of the COCO website"),
        )
    )


def read_coco_instance_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the annotations of a split of COCO, such as ``train2014``.

    A category with at least one object in an image is a positive label; crowd annotations are
    objects. Images without an object are left out. The labels are in the order of the ids of the
    categories.

    Args:
        folder: Folder with ``annotations`` and a folder of images for each split.
        split: Split of the evaluation protocol.

    Raises:
        DataError: If the file of annotations is missing or invalid, or if no image has a label.
    """
    file = folder / ANNOTATIONS / f"instances_{split.name}.json"
    content = read_coco_json(file)
    try:
        categories = coco_category_names(file, content["categories"])
        images = coco_values_by_id(file, "images", content["images"], "file_name")
        indices = coco_annotation_indices(file, images, categories, content["annotations"])
        order = sorted(range(len(categories)), key=list(categories).__getitem__)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{file} must have images (id, file_name), categories (id, name) and annotations "
            f"(image_id, category_id); got a missing or invalid entry: {error}. Restore the "
            "official file."
        ) from error
    targets = np.zeros((len(images), len(categories)))
    targets[indices[:, 0], indices[:, 1]] = 1.0
    labelled = np.flatnonzero(targets.any(axis=1))
    if not len(labelled):
        raise DataError(
            f"{file} must contain at least one annotated object; got none. Restore the official "
            "file."
        )
    file_names = [_plain_file_name(file, name) for name in images.values()]
    names = list(categories.values())
    return ProtocolRows(
        [f"{split.name}/{file_names[row]}" for row in labelled],
        [names[column] for column in order],
        targets[labelled][:, order],
    )


def _plain_file_name(file: Path, name: str) -> str:
    """Return the name of an image, or raise DataError if it is not the name of a file."""
    if not name or "/" in name or "\\" in name or "\0" in name or name.startswith("."):
        raise DataError(
            f"{file}: file_name must be the name of an image without a folder; got "
            f"{quote_of_file(name)}. Restore the official file."
        )
    return name
