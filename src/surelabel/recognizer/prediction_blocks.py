"""Encode images block by block for prediction, and join the predictions of several blocks.

The features of only one block are in memory at a time. The joined predictions of n images and c
labels are arrays ``(n, c)`` in memory, and the image vectors are in a temporary file.
"""

import ctypes
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from surelabel.encoders import Encoder
from surelabel.errors import NoReadableImage
from surelabel.features import EncodedImages, FeatureCache
from surelabel.methods import Method, UsesViews
from surelabel.progress import Progress
from surelabel.recognizer.feature_extraction import feature_extraction_kinds_of_method
from surelabel.recognizer.image_vector_file import ImageVectorFile
from surelabel.recognizer.inputs import (
    ImagesInMemory,
    ResolvedInput,
    encode_recognizer_input,
)
from surelabel.records import (
    EncodingStats,
    Features,
    Images,
    LabelledFeatures,
    Predictions,
    SkippedImage,
)

IMAGES_PER_BLOCK = 4096  # the vector of an image: about 1 KB
IMAGES_PER_VIEW_BLOCK = 1024  # the vectors of the views of an image: about 50 KB
IMAGES_PER_PATCH_BLOCK = 256  # the patch features of an image: about 1 MB


@dataclass(frozen=True)
class EncodedBlock:
    """Features of the readable images of a block.

    Attributes:
        paths: Paths of the readable images, length n.
        rows: Index of each readable image in the source of all blocks, ``(n,)``.
        encoded: Features of the readable images. If no image is readable, the value is None.
        skipped: Images that could not be read, each with the reason.
    """

    paths: Sequence[str]
    rows: npt.NDArray[np.int64]
    encoded: EncodedImages | None
    skipped: Sequence[SkippedImage]

    @property
    def encoding_stats(self) -> EncodingStats:
        """Computing time and number of encoder inputs of the block."""
        if self.encoded is None:
            return EncodingStats(0, 0.0, 0.0)
        return EncodingStats(
            self.encoded.n_cached,
            self.encoded.decode_seconds,
            self.encoded.model_seconds,
            int(self.encoded.encoder_passes.sum()),
        )


def images_per_prediction_block(method: Method) -> int:
    """Return the default number of images per block, which depends on the size of the features."""
    if feature_extraction_kinds_of_method(method) != ["images"]:
        return IMAGES_PER_PATCH_BLOCK
    return IMAGES_PER_VIEW_BLOCK if isinstance(method, UsesViews) else IMAGES_PER_BLOCK


def encode_prediction_blocks(
    source: ResolvedInput,
    method: Method,
    encoder: Encoder,
    cache: FeatureCache,
    *,
    block_size: int,
    progress: Progress | None = None,
    **options: Any,
) -> Iterator[EncodedBlock]:
    """Encode images block by block; images in memory are one block.

    Args:
        source: Images or precomputed features.
        method: Method whose features are computed.
        encoder: Encoder of the images.
        cache: Cache of the features.
        block_size: Number of images per block, >= 1.
        progress: Function called with the number of encoded images and the total number of images.
        options: Options ``workers`` and ``strict`` for encoding image files.

    Raises:
        DataError: If no image of any block can be read, or if ``strict`` is True and an image
            cannot be read.
    """
    n_images, n_readable = len(source), 0
    error: NoReadableImage | None = None
    if isinstance(source, ImagesInMemory):
        block_size = max(n_images, 1)
    for start in range(0, max(n_images, 1), block_size):  # an empty source raises an error below
        if start:
            _return_free_memory()
        block = _slice_prediction_input(source, start, start + block_size)
        block_progress = progress and _progress_of_prediction_block(progress, start, n_images)
        try:
            encoded = encode_recognizer_input(
                block, method, encoder, cache, progress=block_progress, **options
            )
        except NoReadableImage as block_error:
            error = error or block_error
            yield EncodedBlock([], np.empty(0, dtype=np.int64), None, block_error.skipped)
        else:
            n_readable += len(encoded.rows)
            paths = [str(block.paths[row]) for row in encoded.rows]
            yield EncodedBlock(paths, start + encoded.rows, encoded, encoded.skipped)
    if error and not n_readable:
        raise error if n_images <= block_size else _no_readable_image_error(error, n_images)


@dataclass(frozen=True)
class ImageScores:
    """Scores of the images that could be read.

    Attributes:
        scores: Scores of n images and c labels, ``(n, c)``.
        rows: Index of each readable image in the source, ``(n,)``.
        skipped: Images that could not be read, each with the reason.
    """

    scores: npt.NDArray[np.float32]
    rows: npt.NDArray[np.int64]
    skipped: Sequence[SkippedImage]


def score_images_in_blocks(
    source: ResolvedInput,
    method: Method,
    encoder: Encoder,
    cache: FeatureCache,
    *,
    progress: Progress | None = None,
) -> ImageScores:
    """Return the scores of images, with the features of only one block in memory.

    The arguments are those of :func:`encode_prediction_blocks`.

    Raises:
        DataError: If no image can be read.
    """
    scores, rows, skipped = [], [], list[SkippedImage]()
    block_size = images_per_prediction_block(method)
    for block in encode_prediction_blocks(
        source, method, encoder, cache, block_size=block_size, progress=progress
    ):
        skipped += block.skipped
        if block.encoded is not None:
            scores.append(compute_image_scores(method, block.encoded.features))
            rows.append(block.rows)
    return ImageScores(np.concatenate(scores), np.concatenate(rows), tuple(skipped))


@torch.no_grad()
def compute_image_scores(method: Method, features: Features) -> npt.NDArray[np.float32]:
    """Return the scores ``(n, c)`` of a method for n images and c labels."""
    scores: npt.NDArray[np.float32] = method(features).cpu().numpy().astype(np.float32)
    return scores


def _no_readable_image_error(error: NoReadableImage, n_images: int) -> NoReadableImage:
    """Return the error for all blocks from the error of the first block."""
    first = error.skipped[0]
    return NoReadableImage(
        f"At least one image must be readable; none of {n_images} is. The first: {first.path}: "
        f"{first.reason}.",
        error.skipped,
    )


def _return_free_memory() -> None:
    """Return the memory of the block before to the system; worker processes would inherit it."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of the GNU C library only
        if trim:
            trim(0)


def _slice_prediction_input(source: ResolvedInput, start: int, stop: int) -> ResolvedInput:
    """Return some images of the source; images in memory are not divided."""
    if isinstance(source, ImagesInMemory):
        return source
    if isinstance(source, LabelledFeatures):
        return source.take(range(start, min(stop, len(source))))
    return Images(source.paths[start:stop])


def _progress_of_prediction_block(progress: Progress, start: int, n_images: int) -> Progress:
    """Return the progress function of a block that starts at image ``start``.

    If the images of the block are encoded several times, their number does not decrease.
    """
    most = start

    def show_progress(done: int, total: int) -> None:
        nonlocal most
        most = max(most, start + done)
        progress(most, n_images)

    return show_progress


def join_prediction_blocks(
    blocks: Iterator[Predictions], *, n_images: int, folder: Path
) -> Predictions:
    """Return the predictions of all blocks, in order.

    The peak memory is that of one block and of the arrays ``(n, c)``. With more than one block, the
    image vectors are written to a temporary file, which is mapped into memory and has no name. The
    operating system deletes this file when no process uses it.

    Args:
        blocks: Predictions of one recognizer, at least one block.
        n_images: Total number of images of all blocks, with unreadable images.
        folder: Folder of the temporary file. If the folder cannot be written, the folder for
            temporary files is used.

    Raises:
        DataError: If the image vectors cannot be written.
    """
    first, second = next(blocks), next(blocks, None)
    if second is None:
        return first
    with ImageVectorFile(folder) as vectors:
        return _join_prediction_blocks(
            first, itertools.chain((first, second), blocks), n_images, vectors
        )


def _join_prediction_blocks(
    first: Predictions, blocks: Iterator[Predictions], n_images: int, vectors: ImageVectorFile
) -> Predictions:
    """Return the predictions of all blocks; ``first`` is also the first of ``blocks``."""
    scores = np.empty((n_images, len(first.names)), first.scores.dtype)
    logits = None if first.logits is None else np.empty_like(scores, dtype=first.logits.dtype)
    paths: list[str] = []
    hashes: list[str] = []
    skipped: list[SkippedImage] = []
    stats = EncodingStats(0, 0.0, 0.0)
    for block in blocks:
        rows = slice(len(paths), len(paths) + len(block))
        scores[rows] = block.scores
        if logits is not None and block.logits is not None:
            logits[rows] = block.logits
        if block.features is not None:
            vectors.append(block.features)
        paths += block.paths
        hashes += block.hashes or ()
        skipped += block.skipped
        stats = add_encoding_stats(stats, block.encoding_stats)
    return replace(
        first,
        paths=paths,
        scores=scores[: len(paths)],
        logits=None if logits is None else logits[: len(paths)],
        features=vectors.read(len(paths)),
        skipped=tuple(skipped),
        encoding_stats=stats,
        hashes=hashes or None,
    )


def add_encoding_stats(total: EncodingStats, block: EncodingStats | None) -> EncodingStats:
    """Return the sums of two encoding statistics."""
    if block is None:
        return total
    return EncodingStats(
        total.n_cached + block.n_cached,
        total.decode_seconds + block.decode_seconds,
        total.model_seconds + block.model_seconds,
        total.encoder_passes + block.encoder_passes,
    )
