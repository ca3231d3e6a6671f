"""Combine the rows from which images are chosen for annotation: a dataset and a pool."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from surelabel.data import parse_label_names
from surelabel.data.sample_targets import with_sample_targets
from surelabel.errors import InputError
from surelabel.recognizer.inputs import (
    LabelledInput,
    RecognizerInput,
    align_recognizer_input_labels,
    resolve_recognizer_files,
)
from surelabel.records import (
    Images,
    LabelledFeatures,
    LabelledImages,
    LabelledScores,
    RowSelection,
)
from surelabel.storage.image_paths import is_object_url


def annotation_pool(
    source: RecognizerInput, pool: RecognizerInput | None, names: Sequence[str] | None
) -> tuple[LabelledInput, int]:
    """Return the rows of a dataset followed by those of a pool, and the number of dataset rows.

    Args:
        source: Annotated images, vectors or scores; or images without labels, which are a pool.
        pool: Further images without labels, or None. Images of ``source`` are left out.
        names: Labels, length c. If None, the labels of ``source``.

    Raises:
        InputError: If there are no labels, if a pool is given for vectors or scores, or if the pool
            contains vectors or scores.
    """
    resolved = resolve_recognizer_files(source)
    own_names = [] if isinstance(resolved, Images) else list(resolved.names)
    labels = own_names if names is None else list(names)
    if not labels:
        raise InputError(
            "label-next requires the labels to annotate; got none. Give --labels "
            '"dog, bicycle" (in Python names=["dog", "bicycle"]).'
        )
    if not isinstance(resolved, Images):
        resolved = with_sample_targets(resolved)  # a table has one target of each image and label
    if isinstance(resolved, LabelledFeatures):
        if pool is not None:
            raise InputError(
                "A pool requires a dataset of images; got a dataset of vectors or scores. Add the "
                "rows of the pool to the dataset, with unknown targets."
            )
        return _with_labels(resolved, labels), len(resolved)
    if isinstance(resolved, Images):
        empty = LabelledImages([], labels, np.zeros((0, len(labels))))
        return _with_pool(_with_pool(empty, resolved), pool), 0
    table = _with_labels(resolved, labels)
    assert isinstance(table, LabelledImages)  # images stay images
    return _with_pool(table, pool), len(table)


def _with_labels(rows: LabelledInput, labels: Sequence[str]) -> LabelledInput:
    """Return rows with target columns of the given labels; other labels are left out."""
    if list(rows.names) == list(labels):
        return rows
    vocabulary, aliases = parse_label_names(labels)
    with warnings.catch_warnings():  # labels without targets are expected here
        warnings.simplefilter("ignore", UserWarning)
        aligned = align_recognizer_input_labels(rows, vocabulary, aliases)
    if isinstance(rows, LabelledScores):
        return rows.with_labels(labels, aligned.targets, aligned.known)
    return replace(rows, names=labels, targets=aligned.targets, known=aligned.known)


def _real_image_path(path: str) -> str:
    """Return the path of an image without symbolic links; a URL remains unchanged."""
    return path if is_object_url(path) else os.path.realpath(path)


def _with_pool(table: LabelledImages, pool: RecognizerInput | None) -> LabelledImages:
    """Return annotated images, followed by the images of a pool that are not among them.

    Raises:
        InputError: If the pool contains vectors or scores.
    """
    if pool is None:
        return table
    given = resolve_recognizer_files(pool)
    if isinstance(given, LabelledFeatures):
        raise InputError(
            f"A pool must contain images; got {type(given).__name__}. Give image paths or a folder "
            "of images."
        )
    in_table = {_real_image_path(path) for path in table.paths}
    paths = [str(path) for path in given.paths if _real_image_path(path) not in in_table]
    shape = (len(paths), len(table.names))
    selection = table.row_selection
    if selection is not None:
        unknown = np.full(len(paths), np.nan)
        selection = RowSelection(
            [*selection.chosen_by, *[""] * len(paths)],
            np.concatenate([selection.inclusion_probability, unknown]),
        )
    return LabelledImages(
        [*table.paths, *paths],
        table.names,
        np.concatenate([table.targets, np.zeros(shape)]),
        np.concatenate([table.known, np.zeros(shape, dtype=bool)]),
        row_selection=selection,
    )
