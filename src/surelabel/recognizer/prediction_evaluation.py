"""Evaluate stored predictions on annotated images, without a recognizer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.data import StoredPredictions, align_to_vocabulary
from surelabel.errors import InputError
from surelabel.evaluation import Evaluation, evaluate_predictions
from surelabel.label_aliases import list_labels
from surelabel.mapped_arrays import mapped_zeros
from surelabel.progress import Progress
from surelabel.recognizer.user_warnings import warn_unannotated_labels
from surelabel.records import LabelledImages, Predictions
from surelabel.storage.image_paths import absolute_image_path


@dataclass(frozen=True, eq=False)
class AnnotatedPredictions:
    """Predictions of the images that stored predictions and annotations share.

    Attributes:
        predictions: Predictions of the n shared images and c labels, in the order of the stored
            predictions. ``skipped`` contains only images with annotations.
        labelled: Annotations of the same images and labels, in the same order.
        images_without_predictions: Paths of the annotated images without predictions.
        images_without_annotations: Number of images with predictions and without annotations.
        first_without_annotations: Path of the first predicted image without annotations, or None.
    """

    predictions: Predictions
    labelled: LabelledImages
    images_without_predictions: Sequence[str]
    images_without_annotations: int
    first_without_annotations: str | None


def evaluate_stored_predictions(
    stored: StoredPredictions | Predictions,
    labelled: LabelledImages,
    *,
    paths: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> tuple[Evaluation, AnnotatedPredictions]:
    """Compute the metrics of stored predictions on the images that have annotations.

    Only the predictions of annotated images are in memory. Large predictions are in temporary
    files.

    Args:
        stored: Predictions, or opened predictions, which are read in blocks.
        labelled: Annotated images. The predictions may also contain other images.
        paths: Paths of the predicted images, length n, that are compared with those of
            ``labelled``. If None, the stored paths.
        progress: Function called with the number of images whose predictions were read and the
            total number of images.

    Returns:
        The metrics, and the images that were compared.

    Raises:
        InputError: If predictions and annotations share no image or no label.
        DataError: If the file or a part of the predictions is damaged.

    Example:
        >>> paths = ["a.jpg", "b.jpg", "c.jpg"]
        >>> scores = np.float32([[1], [-1], [0]])
        >>> labelled = LabelledImages(["b.jpg", "a.jpg", "d.jpg"], ["dog"], [[0], [1], [1]])
        >>> predictions = Predictions(paths, ["dog"], scores)
        >>> evaluation, compared = evaluate_stored_predictions(predictions, labelled)
        >>> evaluation.summary["mean_average_precision"], compared.first_without_annotations
        (1.0, 'c.jpg')
    """
    shared = _select_annotated_predictions(stored, labelled, paths, progress)
    return evaluate_predictions(shared.predictions, shared.labelled), shared


def _select_annotated_predictions(
    stored: StoredPredictions | Predictions,
    labelled: LabelledImages,
    paths: Sequence[str] | None,
    progress: Progress | None,
) -> AnnotatedPredictions:
    """Return the predictions of the annotated images; see :func:`evaluate_stored_predictions`."""
    paths = stored.paths if paths is None else paths
    label_rows = _annotation_rows(paths, labelled)
    rows = np.flatnonzero(label_rows >= 0)
    if not len(rows):
        raise _no_annotated_image_error(paths, labelled.paths)
    used_rows = label_rows[rows]
    has_prediction = np.isin(np.arange(len(labelled)), used_rows)
    aligned = _align_annotations(stored.names, labelled.take(used_rows))
    used_paths = [paths[row] for row in rows.tolist()]
    annotated = set(map(absolute_image_path, labelled.paths))
    skipped = [i for i in stored.skipped if absolute_image_path(i.path) in annotated]
    others = np.flatnonzero(label_rows < 0)
    return AnnotatedPredictions(
        replace(_take_stored_rows(stored, rows, progress), paths=used_paths, skipped=skipped),
        LabelledImages(used_paths, aligned.names, aligned.targets, aligned.known),
        [labelled.paths[row] for row in np.flatnonzero(~has_prediction).tolist()],
        len(others),
        paths[others[0]] if len(others) else None,
    )


def _annotation_rows(paths: Sequence[str], labelled: LabelledImages) -> npt.NDArray[np.int64]:
    """Return the row of the annotations of each image, or -1 without annotations, ``(n,)``."""
    row_of = {absolute_image_path(path): row for row, path in enumerate(labelled.paths)}
    rows = (row_of.get(absolute_image_path(path), -1) for path in paths)
    return np.fromiter(rows, np.int64, len(paths))


def _align_annotations(names: Sequence[str], labelled: LabelledImages) -> LabelledImages:
    """Return annotations with one column per label of the predictions.

    Raises:
        InputError: If no label has a known target.
    """
    aligned, _ = align_to_vocabulary(labelled, names, {name: [name] for name in names})
    if not aligned.known.any():
        raise InputError(
            "At least one label must have predictions and a known target; got the predicted "
            f"labels {list_labels(names[:5])} and the annotated labels "
            f"{list_labels(labelled.names[:5])}. Give annotations with the predicted labels."
        )
    warn_unannotated_labels(names, aligned.known)
    return aligned


def _take_stored_rows(
    stored: StoredPredictions | Predictions,
    rows: npt.NDArray[np.int64],
    progress: Progress | None,
) -> Predictions:
    """Return scores and log-odds of some images; opened predictions are read in blocks."""
    blocks = stored.blocks() if isinstance(stored, StoredPredictions) else iter([stored])
    arrays: dict[str, npt.NDArray[Any]] = {}
    start = 0
    for block in blocks:
        first, last = np.searchsorted(rows, [start, start + len(block)])
        for name in ("scores", "logits"):
            values = getattr(block, name)
            if values is None:
                continue
            if name not in arrays:
                arrays[name] = mapped_zeros((len(rows), values.shape[1]), values.dtype)
            arrays[name][first:last] = values[rows[first:last] - start]
        start += len(block)
        if progress is not None:
            progress(start, len(stored))
    return Predictions(
        [""] * len(rows),
        stored.names,
        arrays["scores"],
        arrays.get("logits"),
        stored.calibration,
        stored.model,
    )


def _no_annotated_image_error(paths: Sequence[str], annotated: Sequence[str]) -> InputError:
    first = [repr(some[0]) if len(some) else "none" for some in (paths, annotated)]
    return InputError(
        "Predictions and annotations must share at least one image path; the first paths are "
        f"{first[0]} and {first[1]}. Run the command in the folder to which relative paths refer, "
        "or give --images-root."
    )
