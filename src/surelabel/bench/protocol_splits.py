"""Load the images of an evaluation protocol in three splits, for comparisons."""

from pathlib import Path

import numpy as np

from surelabel.bench.image_splits import ImageSplits
from surelabel.counts import format_count
from surelabel.data.protocols import (
    PROTOCOLS,
    EvaluationProtocol,
    ProtocolCheck,
    SplitCheck,
    check_protocol_folder,
)
from surelabel.errors import DataError, InputError
from surelabel.records import LabelledImages
from surelabel.tables import find_table_entry

VALIDATION_SHARE = 0.2  # of the training images, if there is no validation split; our rule
VALIDATION_SEED = 23
NOT_COMPARABLE = "not comparable with published results"


def evaluation_protocol_of_comparison(name: str, comparison: str) -> EvaluationProtocol:
    """Return an evaluation protocol that fits a comparison.

    Args:
        name: Key of ``PROTOCOLS``.
        comparison: Name of the comparison, such as ``calibrated``.

    Raises:
        UnknownName: If there is no such evaluation protocol.
        InputError: If the evaluation protocol does not fit the comparison.
    """
    protocol = find_table_entry(PROTOCOLS, name)
    if comparison not in protocol.comparisons:
        fitting = [key for key, entry in PROTOCOLS.items() if comparison in entry.comparisons]
        raise InputError(
            f"The comparison {comparison} requires one of the evaluation protocols "
            f"{', '.join(fitting)}; got {name}. Give another evaluation protocol."
        )
    return protocol


def load_protocol_image_splits(
    name: str, folder: str | Path, *, comparison: str, subset: bool = False
) -> ImageSplits:
    """Load the annotated images of an evaluation protocol.

    If there is no validation split, a random fifth of the training images is the validation split.
    This rule is ours. The title of a subset states the number of images and that results are not
    comparable with published results.

    Args:
        name: Key of ``PROTOCOLS``.
        folder: Folder of the dataset in its official layout.
        comparison: Name of the comparison.
        subset: Whether images may be missing.

    Raises:
        UnknownName: If there is no such evaluation protocol.
        InputError: If the evaluation protocol does not fit the comparison.
        DataError: If the folder differs from the evaluation protocol.
    """
    protocol = evaluation_protocol_of_comparison(name, comparison)
    check = check_protocol_folder(protocol, folder, subset=subset)
    if check.problems:
        raise DataError(
            f"{folder} must contain the dataset of the evaluation protocol {name}: "
            f"{' '.join(check.problems)}"
        )
    images = {
        role: _labelled_images(check, [c for c in check.splits if c.split.role == role])
        for role in ("train", "validation", "test")
    }
    train, validation = images["train"], images["validation"]
    if not len(validation):
        order = np.random.default_rng(VALIDATION_SEED).permutation(len(train))
        n_validation = round(VALIDATION_SHARE * len(train))
        train, validation = (
            train.take(np.sort(rows)) for rows in (order[n_validation:], order[:n_validation])
        )
    return ImageSplits(
        name=protocol.title + _subset_mark(check),
        train=train,
        validation=validation,
        test=images["test"],
    )


def _labelled_images(check: ProtocolCheck, splits: list[SplitCheck]) -> LabelledImages:
    """Return the images of some splits."""
    names = check.splits[0].rows.names
    paths = [str(check.folder / image) for split in splits for image in split.rows.images]
    targets = [split.rows.targets for split in splits]
    return LabelledImages(paths, list(names), np.concatenate([np.zeros((0, len(names))), *targets]))


def _subset_mark(check: ProtocolCheck) -> str:
    """Return the mark of the title of a subset, or an empty text for the complete dataset."""
    if not check.is_subset:
        return ""
    counts = " and ".join(
        f"{len(split.rows.images):,} of {format_count(split.n_listed, 'image')} of "
        f"{split.split.name}"
        for split in check.splits
    )
    return f" (subset: {counts}; {NOT_COMPARABLE})"
