"""Join the parts of a folder of predictions in the order of the images, whole or in blocks."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.counts import format_count
from surelabel.data.prediction_part_reading import (
    find_part_rows,
    finished_prediction_rows,
    read_failed_images,
    read_prediction_part,
)
from surelabel.data.prediction_part_writing import FailedImages
from surelabel.data.prediction_runs import read_prediction_run
from surelabel.errors import DataError, NoReadableImage
from surelabel.records import Predictions

ROWS_PER_BLOCK = 8192  # default number of images of a block in memory
MAX_OPEN_PARTS = 16  # parts in memory whose images follow in later blocks

_ARRAYS = ("scores", "logits", "features", "uncertainty", "shown")  # with one row per image


def prediction_folder_blocks(
    folder: str | Path, *, block_size: int = ROWS_PER_BLOCK
) -> Iterator[Predictions]:
    """Yield the predictions of a folder in blocks, in the order of the rows of the images.

    At most one block and a few parts are in memory. Each part is read once, unless the images of
    many parts alternate. Blocks do not contain the failed images. Missing images are omitted; see
    :func:`check_prediction_folder_is_complete`.

    Args:
        folder: Folder of the predictions.
        block_size: Number of images per block, >= 1.

    Raises:
        DataError: If a part is damaged or belongs to another run, or if the same image is in two
            parts.
    """
    run, found = read_prediction_run(folder), find_part_rows(folder)
    open_parts: dict[int, Predictions] = {}
    last = np.full(len(found.files), -1)  # last position in row order of an image of each part
    np.maximum.at(last, found.parts, np.arange(len(found)))
    for start in range(0, len(found), block_size):
        window = slice(start, min(start + block_size, len(found)))
        block: Predictions | None = None
        for part in np.unique(found.parts[window]).tolist():
            part_predictions = open_parts.pop(part, None)
            if part_predictions is None:
                _, part_predictions = read_prediction_part(found.files[part], run)
            targets = np.flatnonzero(found.parts[window] == part)
            if block is None:
                block = _empty_predictions(part_predictions, window.stop - window.start)
            positions = found.positions[window][targets]
            _copy_rows(block, targets, part_predictions, positions, found.files[part])
            if last[part] >= window.stop and len(open_parts) < MAX_OPEN_PARTS:
                open_parts[part] = part_predictions
        assert block is not None
        yield block


def check_prediction_folder_is_complete(folder: str | Path) -> None:
    """Check that every image of the run of a folder is predicted or failed.

    Args:
        folder: Folder of the predictions.

    Raises:
        DataError: If images are missing; the message contains their number.
        NoReadableImage: If all images failed, and no part contains a prediction.
    """
    n_images = read_prediction_run(folder).n_images
    finished = finished_prediction_rows(folder)
    if n_missing := n_images - len(finished):
        is_gap = finished != np.arange(len(finished))
        first = int(np.argmax(is_gap)) if is_gap.any() else len(finished)
        raise DataError(
            f"{folder} must contain predictions of all {format_count(n_images, 'image')}; "
            f"{n_missing:,} missing, and the first missing row is {first}. Run the same "
            f"command again. `surelabel status {folder}` counts the missing images."
        )
    failed = read_failed_images(folder)
    if len(failed) == n_images and not len(find_part_rows(folder)):
        reasons = [f", first {image.path}: {image.reason}" for image in failed.images[:1]]
        raise NoReadableImage(
            f"At least one image of {folder} must be readable; prediction failed for all "
            f"{format_count(n_images, 'image')}{''.join(reasons)}. Check the image files.",
            failed.images,
        )


def read_prediction_folder(folder: str | Path) -> Predictions:
    """Return all predictions of a complete folder, in the order of the rows of the images.

    The failed images that no part contains are the skipped images of the predictions.

    Args:
        folder: Folder of the predictions.

    Raises:
        DataError: If images are missing, if a part is damaged or belongs to another run, or if the
            same image is in two parts.
        NoReadableImage: If all images failed.
    """
    check_prediction_folder_is_complete(folder)
    run, found = read_prediction_run(folder), find_part_rows(folder)
    predictions: Predictions | None = None
    for file in found.files:
        rows, part = read_prediction_part(file, run)
        if predictions is None:
            predictions = _empty_predictions(part, len(found))
        targets = np.searchsorted(found.rows, rows)
        _copy_rows(predictions, targets, part, np.arange(len(rows)), file)
    assert predictions is not None  # a complete folder has a part
    return replace(predictions, skipped=read_unpredicted_images(folder).images)


def read_unpredicted_images(folder: str | Path) -> FailedImages:
    """Return the failed images of a folder that no part contains, in the order of their rows.

    Args:
        folder: Folder of the predictions.

    Raises:
        DataError: For the reasons of :func:`find_part_rows` and :func:`read_failed_images`.
    """
    failed = read_failed_images(folder)
    has_no_part = ~np.isin(failed.rows, find_part_rows(folder).rows)
    images = tuple(failed.images[position] for position in np.flatnonzero(has_no_part).tolist())
    return FailedImages(failed.rows[has_no_part], images)


def _empty_predictions(like: Predictions, n_rows: int) -> Predictions:
    """Return predictions of ``n_rows`` images like ``like``, with uninitialized arrays."""
    arrays: dict[str, Any] = {
        name: np.empty((n_rows, values.shape[1]), values.dtype)
        for name in _ARRAYS
        if (values := getattr(like, name)) is not None
    }
    hashes = None if like.hashes is None else [""] * n_rows
    return replace(like, paths=[""] * n_rows, hashes=hashes, **arrays)


def _copy_rows(
    target: Predictions,
    target_rows: npt.NDArray[np.int64],
    part: Predictions,
    part_rows: npt.NDArray[np.integer],
    file: Path,
) -> None:
    """Copy some rows of a part into the arrays and lists of predictions of the same kind.

    Raises:
        DataError: If the part has other labels, or another kind of values.
    """
    kinds = [_kind_of_predictions(predictions) for predictions in (target, part)]
    if kinds[0] != kinds[1]:
        raise DataError(
            f"{file} is damaged: its columns differ from the columns of the other parts. Delete "
            "this file, and run the same command again."
        )
    for name in _ARRAYS:
        if getattr(target, name) is not None:
            getattr(target, name)[target_rows] = getattr(part, name)[part_rows]
    for lists in ("paths", "hashes"):
        if getattr(target, lists) is not None:
            values = getattr(part, lists)
            for row, part_row in zip(target_rows.tolist(), part_rows.tolist(), strict=True):
                getattr(target, lists)[row] = values[part_row]


def _kind_of_predictions(predictions: Predictions) -> tuple[Any, ...]:
    """Return labels, descriptions and kinds of arrays, which are equal for all parts of a run."""
    has_values = [getattr(predictions, name) is None for name in (*_ARRAYS, "hashes")]
    texts = (predictions.model, predictions.calibration, predictions.uncertainty_kind)
    width = None if predictions.features is None else predictions.features.shape[1]
    return (*predictions.names, *texts, *has_values, width)
