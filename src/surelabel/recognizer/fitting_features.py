"""Store the features of the images of a fit in temporary files, or compute them per batch."""

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.features import EncodedImages, FeatureCache
from surelabel.features.encoding_batch_size import encoding_batch_size
from surelabel.features.mapped_features import (
    FeatureRows,
    MappedFeatureWriter,
    has_dense_features,
    mapped_feature_bytes,
)
from surelabel.methods import Method
from surelabel.progress import Progress
from surelabel.recognizer.feature_extraction import extract_features
from surelabel.recognizer.inputs import LabelledInput, encode_recognizer_input
from surelabel.recognizer.prediction_blocks import (
    EncodedPredictionBlock,
    encode_prediction_blocks,
    images_per_prediction_block,
)
from surelabel.records import Features, LabelledFeatures, SkippedImage

MIN_MEASURED_BYTES = 2**30  # smaller features are always stored
RESERVED_BYTES = 2**30  # bytes of the disk that remain free
PROBE_BYTES = 2**26  # bytes that are read to measure the speed of the disk
MEASURED_IMAGES = 16  # images that are encoded to measure the time of the encoder
SMALL_DISK = "the features need {needed:.1f} GB; the free disk space is {free:.1f} GB"
SLOW_DISK = "encoding takes {encode:.3g} s per image, and reading takes {read:.3g} s"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FittingFeatures:
    """Features of the readable images of a fit.

    Attributes:
        features: Features of n images.
        rows: Row index of each image in the dataset, ``(n,)``.
        skipped: Images that could not be read, each with the reason.
    """

    features: Features | FeatureRows
    rows: npt.NDArray[np.int64]
    skipped: Sequence[SkippedImage]


@dataclass(frozen=True)
class ReencodedFeatures:
    """Features of n images that are computed again for each batch.

    Attributes:
        paths: Paths of the images, length n.
        pooled: Pooled vectors in float32, ``(n, d)``.
        method: Method whose features are computed.
        encoder: Encoder of the images.
    """

    paths: Sequence[str]
    pooled: Tensor
    method: Method
    encoder: Encoder

    def take(self, rows: Tensor) -> Features:
        """Return the features of the images in ``rows``, in float32.

        Raises:
            DataError: If an image can no longer be read.
        """
        paths = [self.paths[row] for row in rows.tolist()]
        return extract_features(paths, self.method, self.encoder, strict=True).features

    def subset(self, rows: Tensor) -> "ReencodedFeatures":
        """Return the features of the images in ``rows``, without computing them."""
        paths = [self.paths[row] for row in rows.tolist()]
        return replace(self, paths=paths, pooled=self.pooled[rows])


def encode_fitting_features(
    source: LabelledInput,
    method: Method,
    encoder: Encoder,
    cache: FeatureCache,
    *,
    progress: Progress | None = None,
) -> FittingFeatures:
    """Return the features of the images of a fit; features of many images are not in memory.

    Images are encoded block by block. If there are several blocks, their features are written to
    temporary files; dense features and views are stored in fp16. Each method that is fitted on
    targets requests the same number of views of every image. If dense features of 1 GiB or more do
    not fit on the disk, or are read more slowly than computed, they are computed again for each
    batch. The log states the choice with the measured times.

    Args:
        source: Images or precomputed features.
        method: Method whose features are computed.
        encoder: Encoder of the images.
        cache: Cache of the features.
        progress: Function called with the number of encoded images and the total number of images.

    Raises:
        DataError: If no image can be read, or if the disk is full.
    """
    if isinstance(source, LabelledFeatures):
        return _features_of_one_block(
            encode_recognizer_input(source, method, encoder, cache, progress=progress)
        )
    block_size = _block_size(method, encoder)
    options = {"block_size": block_size, "progress": progress}
    blocks = encode_prediction_blocks(source, method, encoder, cache, **options)  # type: ignore[arg-type]
    if len(source) <= block_size:
        encoded = [block.encoded for block in blocks]
        assert encoded[0] is not None  # otherwise, an error was raised
        return _features_of_one_block(encoded[0])
    return _write_fitting_blocks(blocks, len(source), method, encoder, cache.folder)


def _block_size(method: Method, encoder: Encoder) -> int:
    """Return a number of images per block that is a multiple of the batch size of the encoder.

    With incomplete batches, the last digits of the features would change.
    """
    batch_size = encoding_batch_size(encoder)
    return -(-images_per_prediction_block(method) // batch_size) * batch_size


def _features_of_one_block(encoded: EncodedImages) -> FittingFeatures:
    return FittingFeatures(encoded.features, encoded.rows, encoded.skipped)


def _write_fitting_blocks(
    blocks: Iterator[EncodedPredictionBlock],
    n_images: int,
    method: Method,
    encoder: Encoder,
    folder: Path,
) -> FittingFeatures:
    """Return the features of several blocks of images, stored in files or computed per batch."""
    writer, is_stored = MappedFeatureWriter(n_images, folder), True
    paths, rows, skipped = list[str](), list[npt.NDArray[np.int64]](), list[SkippedImage]()
    for block in blocks:
        skipped += block.skipped
        if block.encoded is None:
            continue
        features = block.encoded.features
        if not rows and has_dense_features(features):
            is_stored = _is_stored(features, n_images, block.paths, method, encoder, folder)
        writer.append(features if is_stored else Features(features.pooled))
        paths += block.paths
        rows.append(block.rows)
    written = writer.features()
    result: Features | FeatureRows = written
    if not is_stored:
        result = ReencodedFeatures(paths, written.pooled, method, encoder)
    elif not has_dense_features(written.stored):
        result = written.stored
    return FittingFeatures(result, np.concatenate(rows), tuple(skipped))


def _is_stored(
    features: Features,
    n_images: int,
    paths: Sequence[str],
    method: Method,
    encoder: Encoder,
    folder: Path,
) -> bool:
    """Return whether dense features are stored in a file, not computed again for each batch.

    Features below 1 GiB are stored. Larger features are stored if 1 GiB of the disk remains free,
    and if reading an image is not slower than encoding it.

    Args:
        features: Features of the first images.
        n_images: Number of all images.
        paths: Paths of the first images.
        method: Method whose features are computed.
        encoder: Encoder of the images.
        folder: Folder of the temporary files.
    """
    bytes_per_image = mapped_feature_bytes(features)
    needed = bytes_per_image * n_images
    if needed < MIN_MEASURED_BYTES:
        return True
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    seconds_to_read = bytes_per_image / disk_bytes_per_second(folder)
    start = time.perf_counter()
    measured = paths[:MEASURED_IMAGES]
    extract_features(measured, method, encoder)
    seconds_to_encode = (time.perf_counter() - start) / len(measured)
    has_space = free - needed >= RESERVED_BYTES
    is_stored = has_space and seconds_to_read <= seconds_to_encode
    reason = (SLOW_DISK if has_space else SMALL_DISK).format(
        free=free / 1e9, needed=needed / 1e9, encode=seconds_to_encode, read=seconds_to_read
    )
    _log.info(
        "Dense features (%.1f GB) are %s: %s.",
        needed / 1e9,
        "stored in fp16" if is_stored else "computed again in each epoch",
        reason,
    )
    return is_stored


def disk_bytes_per_second(folder: Path) -> float:
    """Return the measured speed at which a file is read from a disk, in bytes per second.

    If the system has ``posix_fadvise``, the written file is removed from the page cache before it
    is read.

    Args:
        folder: Folder on the disk, in which a temporary file of 64 MiB is written.

    Raises:
        OSError: If the file cannot be written.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(os.urandom(2**20) * (PROBE_BYTES // 2**20))
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        start = time.perf_counter()
        while file.read(2**22):
            pass
        return PROBE_BYTES / max(time.perf_counter() - start, 1e-9)
