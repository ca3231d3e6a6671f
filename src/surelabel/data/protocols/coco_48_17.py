"""Define the open-vocabulary evaluation protocol of COCO 2014: 48 seen and 17 unseen labels."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from surelabel.counts import format_count
from surelabel.data.protocols.definition.evaluation_protocol import (
    ZERO_SHOT_METRICS,
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.image_list_json import read_image_list
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.data.vocabularies import VOCABULARIES
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

TRAIN_LIST = "annotations/train_48_filtered.json"
UNSEEN_LIST = "annotations/test_17_filtered.json"
TEST_LIST = "annotations/test_65_filtered.json"
IMAGE_FOLDERS = {"COCO_train2014_": "train2014", "COCO_val2014_": "val2014"}

_VOCABULARY = VOCABULARIES["coco-48-17"]
_LISTS = "datasets/json of the repository of RAM"


def read_coco_48_17_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the annotations of a split of the lists of RAM, with images in the folders of COCO.

    The unseen labels of training images are unknown, because the list of the training images has
    only the seen labels. If the list of the zero-shot test differs from the test images with an
    unseen label, the difference is a defect.

    Args:
        folder: Folder with ``annotations``, ``train2014`` and ``val2014``.
        split: Split of the evaluation protocol: ``train`` or ``test``.

    Raises:
        DataError: If a list is missing or invalid, or if an image is not an image of COCO 2014.
    """
    if split.role == "train":
        rows = read_image_list(folder / TRAIN_LIST, _VOCABULARY.seen)
        unknown = np.full((len(rows.images), len(_VOCABULARY.unseen)), np.nan)
        return replace(
            rows,
            images=_coco_image_paths(folder / TRAIN_LIST, rows.images),
            names=_VOCABULARY.names,
            targets=np.hstack([rows.targets, unknown]),
        )
    rows = read_image_list(folder / TEST_LIST, _VOCABULARY.names)
    return replace(
        rows,
        images=_coco_image_paths(folder / TEST_LIST, rows.images),
        defects=[*rows.defects, *_differences_of_zero_shot_test(folder / UNSEEN_LIST, rows)],
    )


def _coco_image_paths(file: Path, names: Sequence[str]) -> list[str]:
    """Return the path of each image in the official folders of COCO 2014.

    Raises:
        DataError: If a file name is not a name of COCO 2014.
    """
    paths = []
    for row, name in enumerate(names):
        prefix = next((prefix for prefix in IMAGE_FOLDERS if name.startswith(prefix)), None)
        if prefix is None:
            raise DataError(
                f"{file}: images[{row}] must be an image of COCO 2014, such as "
                f"COCO_val2014_000000000042.jpg; got {quote_of_file(name)}. Restore the official "
                "file."
            )
        paths.append(f"{IMAGE_FOLDERS[prefix]}/{name}")
    return paths


def _differences_of_zero_shot_test(file: Path, test: ProtocolRows) -> list[str]:
    """Return a sentence if a list is not the test images with an unseen label, with their labels.

    Raises:
        DataError: If the list is missing or invalid.
    """
    listed = read_image_list(file, _VOCABULARY.unseen)
    targets = dict(zip(listed.images, listed.targets.tolist(), strict=True))
    unseen = test.targets[:, len(_VOCABULARY.seen) :]
    expected = {
        image: row.tolist() for image, row in zip(test.images, unseen, strict=True) if row.any()
    }
    different = sorted(
        image for image in {*targets, *expected} if targets.get(image) != expected.get(image)
    )
    if not different:
        return [*listed.defects]
    return [
        *listed.defects,
        f"{file.name} must list the images of {Path(TEST_LIST).name} with an unseen label; the "
        f"lists differ in {format_count(len(different), 'image')}, such as {different[0]}.",
    ]


COCO_48_17 = EvaluationProtocol(
    title="COCO 2014, 48 seen and 17 unseen labels",
    task="labels",
    labels=_VOCABULARY.names,
    label_source="the lists of RAM: seen labels, then unseen labels, each in alphabetical order",
    splits=(
        ProtocolSplit("train", "train", rule="all images; the unseen labels are unknown"),
        ProtocolSplit(
            "test",
            "test",
            SourcedCount(6392, f"test_65_filtered.json, {_LISTS}"),
            rule="all images for the generalized zero-shot test; for the zero-shot test, the 2,729 "
            "images with an unseen label (test_17_filtered.json)",
        ),
    ),
    files=(
        ProtocolFile(TRAIN_LIST, "training images with seen labels", _LISTS),
        ProtocolFile(UNSEEN_LIST, "test images with unseen labels", _LISTS),
        ProtocolFile(TEST_LIST, "test images with seen and unseen labels", _LISTS),
        ProtocolFile("train2014", "training images", "train2014.zip of the COCO website"),
        ProtocolFile("val2014", "test images", "val2014.zip of the COCO website"),
    ),
    read_split=read_coco_48_17_split,
    metrics=ZERO_SHOT_METRICS,
    empty_labels="zero",
    comparisons=("open-vocabulary",),
    groups={"seen": _VOCABULARY.seen, "unseen": _VOCABULARY.unseen},
    notes=(
        "The labels are the split of Bansal et al., Zero-Shot Object Detection, ECCV 2018; the "
        f"other labels of COCO are unused: {', '.join(_VOCABULARY.unused)}.",
        "The lists of RAM are read, because no source gives the rule that selects the 6,392 test "
        "images from val2014; a label is repeated for each object, and counts once.",
        "RAM stores absolute paths of images; only the file names are used, and the images are in "
        "the official folders of COCO 2014.",
        "RAM states 44K training images and 6K test images (Table 8); the exact number of training "
        "images is not verified. In the lists of PIAA, 44,909 images of train2014 have a seen "
        "label and no unseen label.",
        "RAM states k = 3 and k = 5; precision, recall and F1 are computed over all pairs of an "
        "image and a label.",
        "A label without a positive image has the average precision 0 in the code of DualCoOp and "
        "BiAM; all labels of the test images have positive images.",
    ),
)
