"""Select the images and labels that two sets of predictions and the annotations share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array, ColumnIndices, Flags
from surelabel.data import align_to_vocabulary, label_spellings_to_align
from surelabel.errors import InputError
from surelabel.label_aliases import list_labels
from surelabel.records import LabelledImages, Predictions
from surelabel.storage.image_paths import absolute_image_path

ImageOccurrence = tuple[
    str, int
]  # absolute path of an image, and the number of its earlier occurrences


@dataclass(frozen=True, eq=False)
class SharedPredictions:
    """Predictions of the same images and labels, with their targets.

    Attributes:
        first: Predictions of the n shared images and c shared labels.
        second: Predictions of the same images and labels, in the same order.
        targets: Targets in [0, 1], ``(n, c)``. Unknown targets are 0.
        known: True where the target is known, ``(n, c)``.
        images_without_first: Number of annotated images without a prediction in ``first``.
        images_without_second: Number of annotated images without a prediction in ``second``.
        unannotated_images: Number of images with predictions and without annotations.
        labels_of_first_only: Labels of ``first`` that do not match exactly one label of ``second``.
        labels_of_second_only: Labels of ``second`` that do not match exactly one label of
            ``first``.
        unannotated_labels: Labels of ``first`` and ``second`` without a known target.
    """

    first: Predictions
    second: Predictions
    targets: Array
    known: Flags
    images_without_first: int
    images_without_second: int
    unannotated_images: int
    labels_of_first_only: Sequence[str]
    labels_of_second_only: Sequence[str]
    unannotated_labels: Sequence[str]


def select_shared_predictions(
    first: Predictions,
    second: Predictions,
    labelled: LabelledImages,
    *,
    first_names: Sequence[str] | None = None,
    second_names: Sequence[str] | None = None,
) -> SharedPredictions:
    """Return the predictions of the images and labels that two predictions and a dataset share.

    Images are compared by their absolute paths, and labels by their spellings, including the
    spellings of the dataset. A label that matches several labels is not shared.

    Args:
        first: First predictions.
        second: Second predictions.
        labelled: Annotated images.
        first_names: Labels of ``first`` with aliases, as in ``sofa|couch``. If None, the labels
            have no aliases.
        second_names: Labels of ``second`` with aliases.

    Raises:
        InputError: If no image, no label or no known target is shared.
    """
    first_columns, second_columns, targets = _shared_labels(
        first, second, labelled, first_names, second_names
    )
    rows = [_rows_of_paths(paths) for paths in (first.paths, second.paths, labelled.paths)]
    row_of_first, row_of_second, row_of_targets = rows
    shared = [row for row in row_of_targets if row in row_of_first and row in row_of_second]
    if not shared:
        raise _no_shared_image_error(first, second, labelled)
    taken = targets.take([row_of_targets[row] for row in shared])
    is_annotated = np.asarray(taken.known.any(axis=0))
    if not is_annotated.any():
        raise InputError(
            f"At least one shared label must have a known target; got no known target of "
            f"{list_labels(list(targets.names)[:5])}. Check that the dataset contains annotations "
            "of these labels."
        )
    columns = np.flatnonzero(is_annotated)
    return SharedPredictions(
        _take(first, [row_of_first[row] for row in shared], first_columns[columns]),
        _take(second, [row_of_second[row] for row in shared], second_columns[columns]),
        taken.targets[:, columns],
        taken.known[:, columns],
        images_without_first=len(row_of_targets.keys() - row_of_first.keys()),
        images_without_second=len(row_of_targets.keys() - row_of_second.keys()),
        unannotated_images=len((row_of_first | row_of_second).keys() - row_of_targets.keys()),
        labels_of_first_only=_other_labels(first, first_columns),
        labels_of_second_only=_other_labels(second, second_columns),
        unannotated_labels=[
            name for column, name in enumerate(targets.names) if not is_annotated[column]
        ],
    )


def _shared_labels(
    first: Predictions,
    second: Predictions,
    labelled: LabelledImages,
    first_names: Sequence[str] | None,
    second_names: Sequence[str] | None,
) -> tuple[ColumnIndices, ColumnIndices, LabelledImages]:
    """Return the columns of the shared labels in both predictions, and their targets.

    Raises:
        InputError: If there is no shared label.
    """
    spellings = [
        _spellings_of_labels(names or predictions.names, labelled.names)
        for predictions, names in ((first, first_names), (second, second_names))
    ]
    pairs = [
        (i, j)
        for i, of_first in enumerate(spellings[0])
        for j, of_second in enumerate(spellings[1])
        if of_first & of_second
    ]
    counts = [np.bincount([pair[side] for pair in pairs], minlength=1) for side in (0, 1)]
    pairs = [(i, j) for i, j in pairs if counts[0][i] == counts[1][j] == 1]
    if not pairs:
        raise InputError(
            "Both predictions must share at least one label; got "
            f"{list_labels(list(first.names)[:5])} and {list_labels(list(second.names)[:5])}. Give "
            "aliases (sofa|couch), or rename labels."
        )
    columns = np.array(pairs).T
    names = list(first_names or first.names)
    aligned, _ = align_to_vocabulary(labelled, [names[column] for column in columns[0]])
    labels = [first.names[column] for column in columns[0]]
    targets = LabelledImages(aligned.paths, labels, aligned.targets, aligned.known)
    return columns[0], columns[1], targets


def _spellings_of_labels(names: Sequence[str], annotated: Sequence[str]) -> list[set[str]]:
    """Return the spellings of each label, with those of the annotated labels that match it."""
    of_annotated = [label_spellings_to_align(name) for name in annotated]
    result = []
    for name in names:
        spellings = label_spellings_to_align(name)
        result.append(spellings.union(*(other for other in of_annotated if other & spellings)))
    return result


def _rows_of_paths(paths: Sequence[str]) -> dict[ImageOccurrence, int]:
    """Return the row of each image, where a repeated path counts as another image."""
    row_of: dict[ImageOccurrence, int] = {}
    count: dict[str, int] = {}
    for row, path in enumerate(paths):
        absolute = absolute_image_path(path.replace("\\", "/"))
        row_of[absolute, count.get(absolute, 0)] = row
        count[absolute] = count.get(absolute, 0) + 1
    return row_of


def _take(predictions: Predictions, rows: Sequence[int], columns: ColumnIndices) -> Predictions:
    """Return the predictions of some images and labels."""
    cells = np.ix_(np.array(rows), columns)
    return Predictions(
        [predictions.paths[row] for row in rows],
        [predictions.names[column] for column in columns],
        predictions.scores[cells],
        None if predictions.logits is None else predictions.logits[cells],
        predictions.calibration,
        predictions.model,
        row_noun=predictions.row_noun,
    )


def _other_labels(predictions: Predictions, columns: ColumnIndices) -> list[str]:
    shared = set(columns.tolist())
    return [name for column, name in enumerate(predictions.names) if column not in shared]


def _no_shared_image_error(
    first: Predictions, second: Predictions, labelled: LabelledImages
) -> InputError:
    sources = (("A", first.paths), ("B", second.paths), ("the dataset", labelled.paths))
    paths = ", ".join(
        f"{paths[0]!r} … in {what}" if len(paths) else f"none in {what}" for what, paths in sources
    )
    return InputError(
        f"Both predictions and the dataset must share images; got {paths}. Run the command in the "
        "folder to which relative paths refer, or predict the images of the dataset with A and B."
    )
