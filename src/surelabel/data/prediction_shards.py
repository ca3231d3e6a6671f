"""Divide the images of a run into n shards, which several processes or machines predict.

The images are divided into blocks, and shard i has the blocks i, i + n, i + 2n and so on. Images of
a collection are often sorted by folder, so that the size of images changes along the list. Shards
of alternating blocks therefore take about the same time; n contiguous parts of the list would take
different times. Within a block, images are neighbours, so that folders and tar files are read in
order.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.data.prediction_part_reading import find_part_rows, read_failed_images
from surelabel.data.prediction_runs import PredictionRun, read_prediction_run
from surelabel.errors import DataError, InputError

BLOCKS_PER_SHARD = 8  # at least, for many images: a killed process loses at most one block
BATCH_SIZE = 64  # images per forward pass of most encoders; see `encoding_batch_size`


@dataclass(frozen=True)
class ImageShard:
    """One of n shards of the images of a run.

    Attributes:
        number: Number i of the shard, in [1, n].
        count: Number n of shards.
    """

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@dataclass(frozen=True)
class ImageCounts:
    """Numbers of predicted, failed and missing images.

    Attributes:
        images: Number of all images.
        predicted: Number of images with predictions.
        failed: Number of images that could not be predicted.
        missing: Number of images that are neither predicted nor failed.
    """

    images: int
    predicted: int
    failed: int
    missing: int


@dataclass(frozen=True)
class PredictionFolderStatus:
    """Progress of the run of a folder of predictions.

    Attributes:
        run: Description of the run.
        total: Counts of all images.
        shards: Counts of each shard, or empty if the run has no shards.
    """

    run: PredictionRun
    total: ImageCounts
    shards: tuple[ImageCounts, ...]


def parse_image_shard(text: str) -> ImageShard:
    """Return the shard of a text ``i/n``.

    Args:
        text: Number of a shard and number of shards, with 1 <= i <= n.

    Raises:
        InputError: If the text is not a shard.

    Example:
        >>> parse_image_shard("2/8")
        ImageShard(number=2, count=8)
    """
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(
            f"shard must be i/n with 1 <= i <= n; got {text!r}. For 3 shards, give 1/3, 2/3 and "
            "3/3 in separate commands."
        )
    return ImageShard(int(match[1]), int(match[2]))


def image_shard_options(n_images: int, count: int, *, max_block_size: int) -> dict[str, Any]:
    """Return the options of a run that determine the images of each shard.

    The size of a block does not depend on the machine. If there are enough images, the size is a
    multiple of the batch size, or ``max_block_size``.

    Args:
        n_images: Number of images of the run.
        count: Number of shards.
        max_block_size: Maximum number of images of a block; see ``images_per_prediction_block``.
    """
    size = -(-n_images // (BLOCKS_PER_SHARD * count))
    if size < BATCH_SIZE:
        size = min(BATCH_SIZE, -(-n_images // count))
    else:
        size = -(-size // BATCH_SIZE) * BATCH_SIZE
    return {"shards": count, "block_size": max(1, min(size, max_block_size))}


def blocks_of_image_shard(run: PredictionRun, shard: ImageShard) -> range:
    """Return the numbers of the blocks of a shard, counted from 0.

    Args:
        run: Description of the run, with the options of :func:`image_shard_options`.
        shard: Shard of the run.

    Raises:
        DataError: If the option ``block_size`` of the run is missing or invalid.
    """
    n_blocks = -(-run.n_images // _block_size(run))
    return range(shard.number - 1, n_blocks, shard.count)


def rows_of_image_block(run: PredictionRun, block: int) -> npt.NDArray[np.int64]:
    """Return the rows of the images of a block, in order.

    Args:
        run: Description of the run, with the options of :func:`image_shard_options`.
        block: Number of the block, from 0.

    Raises:
        DataError: If the option ``block_size`` of the run is missing or invalid.
    """
    size = _block_size(run)
    return np.arange(block * size, min((block + 1) * size, run.n_images), dtype=np.int64)


def prediction_folder_status(folder: str | Path) -> PredictionFolderStatus:
    """Count the predicted, failed and missing images of a folder of predictions, by shard.

    Args:
        folder: Folder of the predictions.

    Raises:
        DataError: If a file is damaged or belongs to another run, if the same image is in two
            parts, or if an option of the run is invalid.
    """
    run = read_prediction_run(folder)
    predicted = find_part_rows(folder).rows
    failed = np.setdiff1d(read_failed_images(folder).rows, predicted)
    n_shards = _shard_count(run)
    n_images, n_predicted, n_failed = (
        _count_by_shard(run, rows, n_shards)
        for rows in (np.arange(run.n_images, dtype=np.int64), predicted, failed)
    )
    counts = tuple(
        ImageCounts(images, done, failures, images - done - failures)
        for images, done, failures in zip(n_images, n_predicted, n_failed, strict=True)
    )
    total = ImageCounts(
        run.n_images, len(predicted), len(failed), run.n_images - len(predicted) - len(failed)
    )
    return PredictionFolderStatus(run, total, counts)


def _count_by_shard(run: PredictionRun, rows: npt.NDArray[np.int64], n_shards: int) -> list[int]:
    """Return the number of rows in each shard."""
    if not n_shards:
        return []
    shards = rows // _block_size(run) % n_shards
    counts: list[int] = np.bincount(shards, minlength=n_shards).tolist()
    return counts


def _shard_count(run: PredictionRun) -> int:
    """Return the number of shards of a run, or 0 if it has no shards."""
    return _positive_option(run.options, "shards") if "shards" in run.options else 0


def _block_size(run: PredictionRun) -> int:
    return _positive_option(run.options, "block_size")


def _positive_option(options: Mapping[str, Any], name: str) -> int:
    value = options.get(name)
    if type(value) is not int or value < 1:
        raise DataError(
            f"The option {name} in run.json must be an integer of at least 1; got {value!r}. Copy "
            "run.json again from a folder of the same run."
        )
    return value
