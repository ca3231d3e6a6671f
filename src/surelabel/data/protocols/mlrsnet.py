"""Define the open-vocabulary evaluation protocol of MLRSNet: labels of remote sensing images."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.protocols.definition.annotation_defects import identical_labels
from surelabel.data.protocols.definition.attribute_labels import attribute_labels
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.data.protocols.definition.target_tables import read_target_table
from surelabel.errors import DataError

SEED, TEST_SHARE = 0, 5  # one image of five is a test image
_TABLES, _IMAGES = "labels", "Images"
_LABELS = attribute_labels("mlrsnet")


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the labels of the images of a split; the order of the columns can differ by file.

    Raises:
        DataError: If there is no table, or if a table is invalid or has other labels.
    """
    files = sorted((folder / _TABLES).glob("*.csv"))
    if not files:
        raise DataError(
            f"{folder / _TABLES} must contain one CSV file for each category; got none. Add the "
            "official files."
        )
    images, parts, defects = list[str](), list[Array](), list[str]()
    for file in files:
        table = read_target_table(file)
        targets = table.targets[:, _LABELS.columns_of(table.place_of_names, table.names)]
        defects += _defects_of_category(file, targets)
        rows = _rows_of_split(len(targets), split)
        images += [f"{_IMAGES}/{file.stem}/{table.images[row]}" for row in rows]
        parts.append(targets[rows])
    all_targets = np.concatenate(parts)
    known = list(identical_labels(_LABELS.names, all_targets))
    return ProtocolRows(images, _LABELS.names, all_targets, defects=defects, known_defects=known)


def _rows_of_split(n: int, split: ProtocolSplit) -> list[int]:
    """Return the increasing rows of a category of n images that belong to a split."""
    order = np.random.default_rng(SEED).permutation(n)
    n_test = n // TEST_SHARE
    return sorted((order[:n_test] if split.role == "test" else order[n_test:]).tolist())


def _defects_of_category(file: Path, targets: Array) -> Iterator[str]:
    """Yield a sentence if the label that is the category has no positive image."""
    name = file.stem.replace("_", " ")
    if name in _LABELS.names and not (targets[:, _LABELS.names.index(name)] == 1).any():
        yield (
            f"{_TABLES}/{file.name}: no image of this category has the label {name}, out of "
            f"{format_count(len(targets), 'image')}; the labels of its columns are wrong."
        )


MLRSNET = EvaluationProtocol(
    title="MLRSNet",
    task="labels",
    labels=_LABELS.names,
    label_source="the columns of labels/airplane.csv of cugbrs/MLRSNet",
    splits=(
        ProtocolSplit("train", "train", rule="the other images of each category; ours"),
        ProtocolSplit(
            "test",
            "test",
            rule=(
                "of each category with n images, the images at the first n // 5 positions of "
                "numpy.random.default_rng(0).permutation(n); ours"
            ),
        ),
    ),
    files=(
        ProtocolFile(_TABLES, "targets, one CSV file for each category", "cugbrs/MLRSNet"),
        ProtocolFile(
            _IMAGES, "images, one folder for each category", "the dataset that cugbrs/MLRSNet links"
        ),
    ),
    read_split=_read_split,
    metrics={"f1_at_k": {"k": 3}, "mean_average_precision": {}},
    comparisons=("open-vocabulary", "supervised"),
    groups=_LABELS.groups,
    notes=(
        "The README of cugbrs/MLRSNet states 109,161 images of 46 categories, and no splits; "
        "Recover And Match (RAM), Table 8, states 11K training and 21K test images.",
        "The 40 seen and 20 unseen labels of RAM are not published. The split is ours: labels at "
        "the first 20 positions of numpy.random.default_rng(0).permutation(60) are unseen.",
        "The order of the columns differs between the official files, such as labels/desert.csv "
        "and labels/island.csv, so that each file is read by its header.",
        "datasets/json/MLRSNet/test.json of EricTan7/RAM has wrong labels for the categories "
        "desert, golf_course, intersection, island, parkway and river; the labels agree with "
        "files that are read without their header. This list is not used.",
        "The misspelt label habor is harbor.",
        "RAM also reports F1 at 5 labels for each image.",
    ),
)
