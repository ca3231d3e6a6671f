"""Decode image files in worker processes, and compute and cache features of the images."""

import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import torch

from surelabel.counts import format_count
from surelabel.data.images import open_image
from surelabel.encoders import Encoder
from surelabel.errors import DataError, InputError, NoReadableImage
from surelabel.features.cache import FeatureCache, Float16Array, content_hash_for_cache
from surelabel.features.cache_write_buffer import CacheWriteBuffer
from surelabel.features.concurrent_encoding import (
    concurrent_batch_count,
    encode_batches_concurrently,
)
from surelabel.features.decoding_workers import decode_in_workers
from surelabel.features.encoding_batch_size import encode_within_memory, encoding_batch_size
from surelabel.features.feature_kinds import encode_feature_kind, image_cache_fingerprint
from surelabel.features.feature_packing import pack_features, unpack_features
from surelabel.features.resized_pixels import ResizedPixels, normalize_resized, resize_for_encoder
from surelabel.progress import Progress
from surelabel.records import Features, SkippedImage

MIN_IMAGES_FOR_WORKERS = 64  # for fewer images, starting worker processes takes longer


@dataclass(frozen=True)
class EncodedImages:
    """Features of the images that could be read, with statistics of the encoding.

    Attributes:
        features: Features of the n readable images, in the order of the paths, on the CPU.
        rows: Index of each readable image in the given paths, ``(n,)``.
        skipped: Images that could not be read, each with the reason.
        n_cached: Number of images whose features were read from the cache.
        decode_seconds: Time spent decoding, in seconds, summed over the workers.
        model_seconds: Time spent in the encoder, in seconds, summed over the batches. Several
            batches can be encoded at once.
        hashes: Content hashes of the n files, from :func:`content_hash_for_cache`.
        encoder_passes: Number of encoder inputs for each image, ``(n,)``: the image and its views,
            including inputs whose features were read from the cache.
    """

    features: Features
    rows: npt.NDArray[np.int64]
    skipped: tuple[SkippedImage, ...]
    n_cached: int
    decode_seconds: float
    model_seconds: float
    hashes: tuple[str, ...]
    encoder_passes: npt.NDArray[np.int64]


def encode_image_files(
    encoder: Encoder,
    paths: Sequence[str],
    *,
    kind: str = "images",
    cache: FeatureCache | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> EncodedImages:
    """Return features of image files; features that are not cached are computed.

    Args:
        encoder: Image encoder.
        paths: Paths of the images.
        kind: Kind of features; see :class:`Features`. The kind ``images`` has only pooled vectors.
            In addition, ``patches`` and ``self_aware`` have patch vectors, and ``attentive`` has
            self-aware patch vectors and attention weights. The kind ``multi_layer`` has patch
            vectors and the outputs of several layers. The kind ``trunk`` has the tokens of the
            last layer. The kind ``ladder/FIRST/DEPTH`` has the input tokens of the last DEPTH
            blocks and ``self_aware_sum``.
        cache: Cache of the features. If None, features are not cached.
        batch_size: Number of images per forward pass. If None, the result of
            :func:`encoding_batch_size` is used.
        workers: Number of decoding processes. If None, there are no worker processes for fewer
            than 64 images. For more images, there is one process per CPU core, at most 8.
        strict: Whether an unreadable image raises an error instead of being skipped.
        progress: Function that is called with the number of processed images and the number of
            all images.

    Raises:
        InputError: If ``paths`` is empty.
        DataError: If no image can be read, or if ``strict`` is True and an image cannot be read.
        ConfigError: If the kind does not exist, or if the encoder does not support the kind.
    """
    if not paths:
        raise InputError("paths must contain at least one image file; got none. Give image files.")
    workers = image_feature_worker_count(len(paths)) if workers is None else workers
    batch_size = encoding_batch_size(encoder) if batch_size is None else batch_size
    cached_keys = cache.keys(image_cache_fingerprint(encoder), kind) if cache else frozenset[str]()
    loader = _ImageLoader(paths, encoder, cached_keys)
    collector = _ImageFeatureCollector(encoder, kind, cache, paths)
    try:
        with (
            closing(loader.batches(batch_size, workers)) as batches,
            closing(collector.encode(batches)) as encoded_batches,
        ):
            for n_batches, (loaded, arrays) in enumerate(encoded_batches, 1):
                collector.add_batch(loaded, arrays)
                failed = [item for item in loaded if item.reason]
                if failed and strict:
                    raise DataError(f"{paths[failed[0].row]}: {failed[0].reason}")
                if progress:
                    progress(min(n_batches * batch_size, len(paths)), len(paths))
    finally:
        collector.write_to_cache()
    return collector.result()


def image_feature_worker_count(images: int) -> int:
    """Return the default number of worker processes that decode the given number of images."""
    return 0 if images < MIN_IMAGES_FOR_WORKERS else min(8, os.cpu_count() or 1)


@dataclass(frozen=True)
class _LoadedImage:
    """A resized image; if the image is cached or unreadable, ``pixels`` is None."""

    row: int
    key: str
    pixels: ResizedPixels | None
    reason: str
    seconds: float


class _ImageLoader:
    """Decode and resize image files, in worker processes or in the main process."""

    def __init__(self, paths: Sequence[str], encoder: Encoder, cached_keys: frozenset[str]):
        self._paths, self._encoder, self._cached_keys = paths, encoder, cached_keys
        self._min_side = encoder.input_side  # raises an error if the encoder takes no images

    def batches(self, batch_size: int, workers: int) -> Generator[list[_LoadedImage]]:
        """Yield batches of loaded images, in the order of the paths."""
        images = decode_in_workers(
            self.load,
            range(len(self._paths)),
            workers=workers,
            max_pending=2 * (batch_size + workers),
            message_of_killed=lambda row, reason: _LoadedImage(row, "", None, reason, 0.0),
        )
        with closing(images):
            while batch := list(islice(images, batch_size)):
                yield batch

    def load(self, row: int) -> Iterator[_LoadedImage]:
        """Yield one image, without pixels if it is cached or cannot be read."""
        start, path = time.perf_counter(), self._paths[row]
        key, pixels, reason = "", None, ""
        try:
            key = content_hash_for_cache(path)
            if key not in self._cached_keys:
                image = open_image(path, min_side=self._min_side)
                pixels = resize_for_encoder(self._encoder, image)
        except DataError as error:
            key, reason = "", str(error).removeprefix(f"{path}: ")
        yield _LoadedImage(row, key, pixels, reason, time.perf_counter() - start)


class _ImageFeatureCollector:
    """Features, errors and timings of one call of ``encode_image_files``."""

    def __init__(
        self, encoder: Encoder, kind: str, cache: FeatureCache | None, paths: Sequence[str]
    ):
        self._encoder, self._kind, self._cache, self._paths = encoder, kind, cache, paths
        self._arrays: dict[str, Float16Array] = {}
        self._started_keys: set[str] = set()
        self._keys: dict[int, str] = {}
        self._reasons: dict[int, str] = {}
        self._n_cached = 0
        self._decode_seconds = self._model_seconds = 0.0
        self._new_features = CacheWriteBuffer(cache, image_cache_fingerprint(encoder), kind)

    def encode(
        self, batches: Iterator[list[_LoadedImage]]
    ) -> Generator[tuple[list[_LoadedImage], dict[str, Float16Array]]]:
        """Yield the batches, each with the features of images that no earlier batch contains."""
        started = ((loaded, self._pixels_to_encode(loaded)) for loaded in batches)
        encoded = encode_batches_concurrently(
            lambda batch: self._encode_pixels(batch[1]),
            started,
            concurrency=concurrent_batch_count(self._encoder),
        )
        with closing(encoded):
            for (loaded, _), (arrays, seconds) in encoded:
                self._model_seconds += seconds
                yield loaded, arrays

    def add_batch(
        self, loaded: Sequence[_LoadedImage], new_arrays: Mapping[str, Float16Array]
    ) -> None:
        """Add the new features of a batch, and read the cached features of its other images."""
        self._arrays |= new_arrays
        self._new_features.add(new_arrays)
        row_of = {i.key: i.row for i in loaded if i.key and i.key not in self._arrays}
        if row_of and self._cache:
            self._arrays |= self._cache.get(
                image_cache_fingerprint(self._encoder), self._kind, sorted(row_of)
            )
        for key in row_of.keys() - self._arrays.keys():  # deleted from the cache meanwhile
            image = open_image(self._paths[row_of[key]], min_side=self._encoder.input_side)
            arrays, seconds = self._encode_pixels({key: resize_for_encoder(self._encoder, image)})
            self._arrays |= arrays
            self._new_features.add(arrays)
            self._model_seconds += seconds
        for item in loaded:
            self._decode_seconds += item.seconds
            if item.reason:
                self._reasons[item.row] = item.reason
            else:
                self._keys[item.row] = item.key
                self._n_cached += item.pixels is None

    def write_to_cache(self) -> None:
        """Write the new features to the cache."""
        self._new_features.write()

    def result(self) -> EncodedImages:
        """Return the features of all readable images, in the order of the paths.

        Raises:
            NoReadableImage: If no image can be read.
        """
        paths = self._paths
        skipped = tuple(
            SkippedImage(paths[row], self._reasons[row]) for row in sorted(self._reasons)
        )
        if not self._keys:
            raise NoReadableImage(
                "At least one image must be readable; got "
                f"{format_count(len(paths), 'unreadable image')}. The first error: "
                f"{skipped[0].path}: {skipped[0].reason}.",
                skipped,
            )
        rows = sorted(self._keys)
        stacked = np.stack([self._arrays[self._keys[r]] for r in rows])
        return EncodedImages(
            features=unpack_features(self._kind, stacked, self._encoder.width),
            rows=np.array(rows),
            skipped=skipped,
            n_cached=self._n_cached,
            decode_seconds=self._decode_seconds,
            model_seconds=self._model_seconds,
            hashes=tuple(self._keys[r] for r in rows),
            encoder_passes=np.ones(len(rows), dtype=np.int64),
        )

    def _pixels_to_encode(self, loaded: Sequence[_LoadedImage]) -> dict[str, ResizedPixels]:
        """Return the pixels of uncached images, without images that were returned before."""
        pixels = {
            image.key: image.pixels
            for image in loaded
            if image.pixels is not None and image.key not in self._started_keys
        }
        self._started_keys |= pixels.keys()
        return pixels

    def _encode_pixels(
        self, pixels: Mapping[str, ResizedPixels]
    ) -> tuple[dict[str, Float16Array], float]:
        """Return the packed features of one batch by key, and the time in seconds."""
        if not pixels:
            return {}, 0.0
        start = time.perf_counter()
        batch = normalize_resized(self._encoder, np.stack(list(pixels.values())))
        arrays = encode_within_memory(
            self._encode_batch,
            batch,
            fingerprint=image_cache_fingerprint(self._encoder),
            kind=self._kind,
        )
        return dict(zip(pixels, arrays, strict=True)), time.perf_counter() - start

    def _encode_batch(self, pixels: torch.Tensor) -> Float16Array:
        """Return the packed features of images, ``(n, …)``."""
        features = encode_feature_kind(self._encoder, self._kind, pixels)
        return pack_features(self._kind, features)
