"""Predict the images of one shard of a run, and write them to a folder of predictions."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.data import (
    FailedImages,
    ImageShard,
    PredictionRun,
    blocks_of_image_shard,
    describe_prediction_run,
    finished_prediction_rows,
    image_shard_options,
    open_prediction_folder,
    rows_of_image_block,
    write_failed_images,
    write_prediction_part,
)
from surelabel.errors import DataError, NoReadableImage
from surelabel.file_locks import lock_path
from surelabel.progress import Progress
from surelabel.recognizer.prediction_blocks import images_per_prediction_block
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Predictions


def predict_image_shard(
    folder: str | Path,
    recognizer: Recognizer,
    images: Sequence[str],
    shard: ImageShard,
    *,
    options: Mapping[str, Any],
    select: Callable[[Predictions], Predictions] | None = None,
    progress: Progress | None = None,
    **prediction_options: Any,
) -> Iterator[Predictions]:
    """Predict the images of a shard block by block; write each block to a folder, and yield it.

    A block is written to the folder as one part, and its unreadable images as one file of failed
    images. Blocks that an earlier process finished are neither predicted again nor yielded. Image
    vectors are not written.

    Args:
        folder: Folder of the predictions, which can contain other shards of the same run.
        recognizer: Recognizer of the images.
        images: Paths of the images of all shards, the same for each shard.
        shard: Shard to predict.
        options: Further options that determine the predictions, as JSON values.
        select: Function that adds the shown labels to a block. If None, no labels are selected.
        progress: Function called with the number of finished images and the number of images of the
            shard.
        prediction_options: Options ``uncertainty``, ``workers`` and ``strict`` of
            ``predict_blocks``.

    Raises:
        DataError: If the folder belongs to another run or cannot be written, or if another process
            predicts the same shard. The message names the shard.
    """
    max_block_size = images_per_prediction_block(recognizer.method)
    division = image_shard_options(len(images), shard.count, max_block_size=max_block_size)
    run = describe_prediction_run(
        recognizer.fingerprint,
        recognizer.names,
        recognizer.calibrated_on,
        images,
        {**options, **division, **recognizer.encoder.engine.run_option},
    )
    open_prediction_folder(folder, run)
    try:
        with lock_path(Path(os.path.abspath(folder), f"shard-{shard.number}")):
            blocks, n_finished = _unfinished_blocks(folder, run, shard)
            outdated = [images[row] for rows in blocks.values() for row in rows.tolist()]
            if progress:
                progress(n_finished, n_finished + len(outdated))
            if not outdated:
                return
            predictions = recognizer.predict_blocks(
                outdated,
                block_size=division["block_size"],
                progress=progress and _progress_of_shard(progress, n_finished),
                **prediction_options,
            )
            for (number, rows), predicted in zip(
                blocks.items(), _with_unreadable_blocks(predictions), strict=True
            ):
                block = select(predicted) if select else predicted
                _write_image_block(folder, run, number, rows, block, images)
                yield block
    except DataError as error:
        raise DataError(f"Shard {shard}: {error}") from error


def _unfinished_blocks(
    folder: str | Path, run: PredictionRun, shard: ImageShard
) -> tuple[dict[int, npt.NDArray[np.int64]], int]:
    """Return the rows of each unfinished block of a shard, and the number of finished images."""
    finished = finished_prediction_rows(folder)
    blocks, n_finished = {}, 0
    for number in blocks_of_image_shard(run, shard):
        rows = rows_of_image_block(run, number)
        first, stop = np.searchsorted(finished, [rows[0], rows[-1] + 1])
        if stop - first < len(rows):
            blocks[number] = rows
        else:
            n_finished += len(rows)
    return blocks, n_finished


def _with_unreadable_blocks(blocks: Iterable[Predictions]) -> Iterator[Predictions]:
    """Yield all blocks, even if no image of any block can be read."""
    try:
        yield from blocks
    except NoReadableImage as error:
        if not error.skipped:
            raise


def _write_image_block(
    folder: str | Path,
    run: PredictionRun,
    number: int,
    rows: npt.NDArray[np.int64],
    block: Predictions,
    images: Sequence[str],
) -> None:
    """Write the failed images of a block, then its predictions, which complete the block."""
    skipped = {image.path: image for image in block.skipped}
    is_failed = np.array([images[row] in skipped for row in rows.tolist()], dtype=bool)
    if is_failed.any():
        failed = [skipped[images[row]] for row in rows[is_failed].tolist()]
        write_failed_images(
            folder, run, FailedImages(rows[is_failed], failed), name=_block_name(number)
        )
    if len(block):
        without_vectors = replace(block, features=None)
        write_prediction_part(folder, run, _block_name(number), without_vectors, rows[~is_failed])


def _block_name(number: int) -> str:
    return f"{number:06}"


def _progress_of_shard(progress: Progress, n_finished: int) -> Progress:
    """Return a progress function that also counts the images that were finished before."""

    def show_progress(done: int, total: int) -> None:
        progress(n_finished + done, n_finished + total)

    return show_progress
