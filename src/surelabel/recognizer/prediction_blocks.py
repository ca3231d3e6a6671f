"""Encode and score images block by block, with the features of only one block in memory."""

import ctypes
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from surelabel.counts import format_count
from surelabel.encoders import Encoder
from surelabel.errors import InputError, NoReadableImage
from surelabel.features import EncodedImages, FeatureCache, FeatureRows
from surelabel.mapped_arrays import mapped_zeros, row_blocks
from surelabel.methods import Method, UsesViews
from surelabel.progress import Progress
from surelabel.recognizer.feature_extraction import feature_extraction_kinds_of_method
from surelabel.recognizer.images_in_memory import ImagesInMemory
from surelabel.recognizer.inputs import ResolvedInput, encode_recognizer_input
from surelabel.records import (
    EncodingStats,
    Features,
    Images,
    LabelledFeatures,
    SkippedImage,
)

IMAGES_PER_BLOCK = 4096  # the vector of an image needs about 1 KB
IMAGES_PER_VIEW_BLOCK = 1024  # the vectors of the views of an image need about 50 KB
IMAGES_PER_PATCH_BLOCK = 256  # the patch features of an image need about 1 MB


@dataclass(frozen=True)
class EncodedPredictionBlock:
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
        """Return the computing time and the number of encoder inputs of the block."""
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


def check_prediction_count(name: str, value: int | None, *, minimum: int) -> None:
    """Check an argument that is a number of images or processes, or None.

    Args:
        name: Name of the argument in the error message.
        value: Value of the argument.
        minimum: Minimum value.

    Raises:
        InputError: If the value is not an integer, or is below ``minimum``.
    """
    if value is None:
        return
    if not isinstance(value, int | np.integer) or value < minimum:
        raise InputError(
            f"{name} must be an integer of at least {minimum}, or None; got {value!r}. Omit "
            f"{name} for the default."
        )


def encode_prediction_blocks(
    source: ResolvedInput,
    method: Method,
    encoder: Encoder,
    cache: FeatureCache,
    *,
    block_size: int,
    progress: Progress | None = None,
    **options: Any,
) -> Iterator[EncodedPredictionBlock]:
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
            yield EncodedPredictionBlock([], np.empty(0, dtype=np.int64), None, block_error.skipped)
        else:
            n_readable += len(encoded.rows)
            paths = [str(block.paths[row]) for row in encoded.rows]
            yield EncodedPredictionBlock(paths, start + encoded.rows, encoded, encoded.skipped)
    if error and not n_readable:
        raise error if n_images <= block_size else _no_readable_image_error(error, n_images)


@dataclass(frozen=True)
class ImageScores:
    """Scores of the images that could be read.

    Attributes:
        scores: Scores of n images and c labels, ``(n, c)``.
        vectors: Vectors of the images, ``(n, d)``.
        rows: Index of each readable image in the source, ``(n,)``.
        skipped: Images that could not be read, each with the reason.
    """

    scores: npt.NDArray[np.float32]
    vectors: npt.NDArray[np.float16]
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
    """Return scores and vectors of images, while other features of only one block are in memory.

    The arguments are those of :func:`encode_prediction_blocks`.

    Raises:
        DataError: If no image can be read.
    """
    n_read, rows, skipped = 0, list[npt.NDArray[np.int64]](), list[SkippedImage]()
    scores = vectors = None
    block_size = images_per_prediction_block(method)
    for block in encode_prediction_blocks(
        source, method, encoder, cache, block_size=block_size, progress=progress
    ):
        skipped += block.skipped
        if block.encoded is not None:
            block_scores = compute_image_scores(method, block.encoded.features)
            block_vectors = half_precision_image_vectors(block.encoded.features)
            if scores is None or vectors is None:
                scores, vectors = (
                    mapped_zeros((len(source), a.shape[1]), a.dtype, folder=cache.folder)
                    for a in (block_scores, block_vectors)
                )
            stop = n_read + len(block.rows)
            scores[n_read:stop], vectors[n_read:stop] = block_scores, block_vectors
            rows.append(block.rows)
            n_read = stop
    assert scores is not None  # encode_prediction_blocks raises an error if no image is readable
    assert vectors is not None
    return ImageScores(scores[:n_read], vectors[:n_read], np.concatenate(rows), tuple(skipped))


@torch.no_grad()
def compute_image_scores(method: Method, features: Features) -> npt.NDArray[np.float32]:
    """Return the scores ``(n, c)`` of a method for n images and c labels."""
    scores: npt.NDArray[np.float32] = method(features).cpu().numpy().astype(np.float32)
    return scores


def half_precision_image_vectors(features: Features | FeatureRows) -> npt.NDArray[np.float16]:
    """Return the image vectors in fp16 for predictions and calibrators, ``(n, d)``.

    Values of vectors that are not normalized are clipped to the range of fp16.
    """
    limit = float(np.finfo(np.float16).max)
    pooled = features.pooled.cpu().numpy()
    vectors: npt.NDArray[np.float16] = mapped_zeros(pooled.shape, np.float16)
    for rows in row_blocks(pooled):
        vectors[rows] = pooled[rows].clip(-limit, limit)
    return vectors


def _no_readable_image_error(error: NoReadableImage, n_images: int) -> NoReadableImage:
    """Return the error for all blocks from the error of the first block."""
    first = error.skipped[0]
    return NoReadableImage(
        f"At least one image must be readable; got {format_count(n_images, 'unreadable image')}. "
        f"The first error: {first.path}: {first.reason}.",
        error.skipped,
    )


def _return_free_memory() -> None:
    """Return free memory to the operating system, because worker processes would inherit it."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only in the GNU C library
        if trim:
            trim(0)


def _slice_prediction_input(source: ResolvedInput, start: int, stop: int) -> ResolvedInput:
    """Return the images from ``start`` to ``stop``, or all images if they are in memory."""
    if isinstance(source, ImagesInMemory):
        return source
    if isinstance(source, LabelledFeatures):
        return source.take(range(start, min(stop, len(source))))
    return Images(source.paths[start:stop])


def _progress_of_prediction_block(progress: Progress, start: int, n_images: int) -> Progress:
    """Return the progress function of a block that starts at image ``start``.

    If the images of the block are encoded several times, the displayed number does not decrease.
    """
    most = start

    def show_progress(done: int, total: int) -> None:
        nonlocal most
        most = max(most, start + done)
        progress(most, n_images)

    return show_progress
