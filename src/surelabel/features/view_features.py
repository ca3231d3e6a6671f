"""Compute features of image parts (views), which are cropped and encoded separately."""

import hashlib
import math
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from surelabel.counts import format_count
from surelabel.data.images import open_image, to_upright_rgb_image
from surelabel.encoders import Encoder
from surelabel.errors import DataError, InputError
from surelabel.features.cache import FeatureCache, Float16Array, content_hash_for_cache
from surelabel.features.cache_write_buffer import CacheWriteBuffer
from surelabel.features.concurrent_encoding import (
    concurrent_batch_count,
    encode_batches_concurrently,
)
from surelabel.features.decoding_workers import decode_in_workers
from surelabel.features.encoding_batch_size import encode_within_memory, encoding_batch_size
from surelabel.features.feature_kinds import image_cache_fingerprint
from surelabel.features.feature_packing import pack_features
from surelabel.features.image_features import image_feature_worker_count
from surelabel.features.resized_pixels import ResizedPixels, normalize_resized, resize_for_encoder
from surelabel.progress import Progress
from surelabel.views import Box, ViewLayout, crop_and_resize_box

KIND = "views"
VIEWS_PER_MESSAGE = 8  # largest number of views that a worker sends at once; limits the memory
MESSAGES_PER_BATCH = 8  # a batch exceeds its size by less than one message

ImageSource = str | bytes | Image.Image  # path, content of an image file, or image


@dataclass(frozen=True)
class EncodedViews:
    """Features of image parts (views), with statistics of the encoding.

    Attributes:
        views: Vectors of the views of n images in the order of the boxes, ``(n, t, d)``, where t is
            the largest number of views of an image. If an image has fewer views, the remaining
            vectors are 0.
        counts: Number of views of each image, ``(n,)``; 0 for an image without views or an
            unreadable image.
        unreadable: Reasons why images cannot be read, by index of the image.
        n_cached: Number of images whose views were read from the cache.
        decode_seconds: Time spent decoding, in seconds, summed over the workers.
        model_seconds: Time spent in the encoder, in seconds, summed over the batches. Several
            batches can be encoded at once.
    """

    views: Tensor
    counts: npt.NDArray[np.int64]
    unreadable: dict[int, str]
    n_cached: int
    decode_seconds: float
    model_seconds: float


def encode_views(
    encoder: Encoder,
    images: Sequence[ImageSource],
    layout: ViewLayout | Sequence[ViewLayout | None],
    *,
    hashes: Sequence[str] | None = None,
    cache: FeatureCache | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> EncodedViews:
    """Compute features of the views of images, each resized to the input size of the encoder.

    A JPEG is decoded at a lower resolution only if its smallest view is then still at least as
    large as the encoder input.

    Args:
        encoder: Image encoder.
        images: Paths of image files, or images in memory as PIL images or contents of files.
        layout: One layout of the views for all images, or one layout per image. If the layout of an
            image is None, the image has no views.
        hashes: Content hashes of the images, as in ``EncodedImages.hashes``. If None, the hashes
            are computed. If a file no longer has the given hash, the file is treated as unreadable.
        cache: Cache of the features. If None, features are not cached. Features of images in
            memory are never cached.
        batch_size: Number of views per forward pass. If None, the result of
            :func:`encoding_batch_size` is used.
        workers: Number of decoding processes. If None, there are no worker processes for fewer
            than 64 images. For more images, there is one process per CPU core, at most 8.
        progress: Function that is called with the number of processed images and the number of
            all images.

    Raises:
        InputError: If ``images`` is empty, or if the numbers of images and layouts differ.

    Differs:
        TailorCLIP samples new crops in each epoch. Here, the views of an image are fixed by the
        layout and the content of the image.
    """
    layouts = list(layout) if isinstance(layout, Sequence) else [layout] * len(images)
    if not images or len(layouts) != len(images):
        raise InputError(
            f"images must contain at least one image, and layout must be one layout or one per "
            f"image; got {format_count(len(images), 'image')} and {len(layouts)} layouts."
        )
    batch_size = encoding_batch_size(encoder) if batch_size is None else batch_size
    in_memory = not isinstance(images[0], str)
    collector = _ViewFeatureCollector(
        encoder, None if in_memory else cache, images, layouts, hashes
    )
    workers = image_feature_worker_count(len(collector.missing)) if workers is None else workers
    workers = 0 if in_memory else workers
    messages = decode_in_workers(
        _ViewLoader(encoder, batch_size).load,
        list(collector.missing.items()),
        workers=workers,
        max_pending=2 * workers,
        message_of_killed=lambda task, reason: _ViewMessage(task[0], None, True, reason, 0.0),
    )
    try:
        with closing(messages), closing(collector.encode(messages, batch_size)) as batches:
            for batch, vectors in batches:
                collector.add_batch(batch, vectors)
                if progress:
                    progress(collector.n_done, len(images))
    finally:
        collector.write_to_cache()
    if progress:
        progress(len(images), len(images))
    return collector.result()


def image_hash_for_view_features(image: ImageSource) -> str:
    """Return a hash of the content of a file, or of the upright pixels of an image in memory.

    Raises:
        DataError: If a file cannot be read.
    """
    if not isinstance(image, Image.Image):
        return content_hash_for_cache(image)
    upright = to_upright_rgb_image(image)
    digest = hashlib.blake2b(repr(upright.size).encode(), digest_size=16)
    digest.update(upright.tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class _ViewTask:
    """Views of all images with one content hash and layout."""

    image_hash: str
    layout: ViewLayout
    rows: list[int]
    images: list[ImageSource]


@dataclass(frozen=True)
class _ViewMessage:
    """Consecutive views of an image; if the image is unreadable, ``pixels`` is None."""

    key: str
    pixels: ResizedPixels | None
    is_last: bool
    reason: str
    seconds: float


class _ViewLoader:
    """Decode images, and crop and resize their views."""

    def __init__(self, encoder: Encoder, batch_size: int):
        self._encoder = encoder
        self._views_per_message = max(1, min(VIEWS_PER_MESSAGE, batch_size // MESSAGES_PER_BATCH))
        self._min_side = encoder.input_side  # raises an error if the encoder takes no images
        self._down, self._across = encoder.preprocess_cfg["size"]

    def load(self, key_and_task: tuple[str, _ViewTask]) -> Iterator[_ViewMessage]:
        """Yield the views of an image, or the reason why it cannot be read."""
        key, task = key_and_task
        start = time.perf_counter()
        try:
            image = _open_image_of_view_task(
                task, math.ceil(self._min_side / task.layout.min_side_share)
            )
        except DataError as error:
            yield _ViewMessage(key, None, True, str(error), time.perf_counter() - start)
            return
        boxes = task.layout.boxes(image.size, task.image_hash)
        for first in range(0, len(boxes), self._views_per_message):
            end = first + self._views_per_message
            views = [self._resize_view(image, box) for box in boxes[first:end]]
            is_last, seconds = end >= len(boxes), time.perf_counter() - start
            yield _ViewMessage(key, np.stack(views), is_last, "", seconds)
            start = time.perf_counter()

    def _resize_view(self, image: Image.Image, box: Box) -> ResizedPixels:
        view = crop_and_resize_box(image, box, size=(self._across, self._down))
        return resize_for_encoder(self._encoder, view)


def _open_image_of_view_task(task: _ViewTask, min_side: int) -> Image.Image:
    """Return the first image with unchanged content, or raise the error of the last image."""
    for image in task.images:
        if isinstance(image, Image.Image):
            return to_upright_rgb_image(image)
        if isinstance(image, bytes):
            return open_image(image, min_side=min_side)
        try:
            if content_hash_for_cache(image) != task.image_hash:
                raise DataError(f"{image}: changed while it was being read")
            return open_image(image, min_side=min_side)
        except DataError as error:
            problem = DataError(str(error).removeprefix(f"{image}: "))
    raise problem


class _ViewFeatureCollector:
    """Tasks, features, errors and timings of one call of ``encode_views``."""

    def __init__(
        self,
        encoder: Encoder,
        cache: FeatureCache | None,
        images: Sequence[ImageSource],
        layouts: Sequence[ViewLayout | None],
        hashes: Sequence[str] | None,
    ):
        self._encoder, self._cache, self._n_images = encoder, cache, len(images)
        self._tasks: dict[str, _ViewTask] = {}
        self._unreadable: dict[int, str] = {}
        for row, (image, layout) in enumerate(zip(images, layouts, strict=True)):
            if layout is not None:
                self._add_task(row, image, layout, hashes[row] if hashes else None)
        self._arrays = (
            cache.get(image_cache_fingerprint(encoder), KIND, self._tasks) if cache else {}
        )
        self.missing = {key: task for key, task in self._tasks.items() if key not in self._arrays}
        self.n_done = self._n_images - sum(len(task.rows) for task in self.missing.values())
        self._n_cached = sum(len(self._tasks[key].rows) for key in self._arrays)
        self._decode_seconds = self._model_seconds = 0.0
        self._new_features = CacheWriteBuffer(cache, image_cache_fingerprint(encoder), KIND)
        self._incomplete: dict[str, list[Float16Array]] = defaultdict(list)

    def _add_task(
        self, row: int, image: ImageSource, layout: ViewLayout, image_hash: str | None
    ) -> None:
        """Add an image; images with equal content and layout form one task."""
        try:
            image_hash = image_hash or image_hash_for_view_features(image)
        except DataError as error:
            self._unreadable[row] = str(error).removeprefix(f"{image!s}: ")
            return
        key = f"{image_hash} {layout.name}"
        task = self._tasks.setdefault(key, _ViewTask(image_hash, layout, [], []))
        task.rows.append(row)
        task.images.append(image)

    def encode(
        self, messages: Iterator[_ViewMessage], batch_size: int
    ) -> Generator[tuple[list[_ViewMessage], Float16Array]]:
        """Yield batches of messages with views, each with the packed vectors of the views."""
        encoded = encode_batches_concurrently(
            self._encode_batch,
            self._batches(messages, batch_size),
            concurrency=concurrent_batch_count(self._encoder),
        )
        with closing(encoded):
            for batch, (vectors, seconds) in encoded:
                self._model_seconds += seconds
                yield batch, vectors

    def add_batch(self, batch: Sequence[_ViewMessage], vectors: Float16Array) -> None:
        """Add the vectors of all views of a batch."""
        new_arrays: dict[str, Float16Array] = {}
        for message in batch:
            n_views = 0 if message.pixels is None else len(message.pixels)
            image_vectors, vectors = vectors[:n_views], vectors[n_views:]
            self._incomplete[message.key].append(image_vectors)
            if message.is_last:
                arrays = self._incomplete.pop(message.key)
                new_arrays[message.key] = np.concatenate(arrays)
                self.n_done += len(self._tasks[message.key].rows)
        self._arrays |= new_arrays
        self._new_features.add(new_arrays)

    def _batches(
        self, messages: Iterator[_ViewMessage], batch_size: int
    ) -> Iterator[list[_ViewMessage]]:
        """Yield lists of messages with at least ``batch_size`` views, except the last list."""
        batch: list[_ViewMessage] = []
        n_views = 0
        for message in messages:
            self._decode_seconds += message.seconds
            if message.pixels is None:
                rows = self._tasks[message.key].rows
                self._unreadable |= dict.fromkeys(rows, message.reason)
                self.n_done += len(rows)
                continue
            batch.append(message)
            n_views += len(message.pixels)
            if n_views >= batch_size:
                yield batch
                batch, n_views = [], 0
        if batch:
            yield batch

    def _encode_batch(self, batch: Sequence[_ViewMessage]) -> tuple[Float16Array, float]:
        """Return the packed vectors of all views of a batch, and the time in seconds."""
        start = time.perf_counter()
        views = [message.pixels for message in batch if message.pixels is not None]
        vectors = encode_within_memory(
            lambda pixels: pack_features("images", self._encoder.encode_images(pixels))[:, 0],
            normalize_resized(self._encoder, np.concatenate(views)),
            fingerprint=image_cache_fingerprint(self._encoder),
            kind=KIND,
        )
        return vectors, time.perf_counter() - start

    def write_to_cache(self) -> None:
        """Write the new view features to the cache."""
        self._new_features.write()

    def result(self) -> EncodedViews:
        """Return the features of all views in the order of the images."""
        counts = np.zeros(self._n_images, dtype=np.int64)
        for key, vectors in self._arrays.items():
            counts[self._tasks[key].rows] = len(vectors)
        views = torch.zeros(self._n_images, int(counts.max()), self._encoder.width)
        for key, vectors in self._arrays.items():
            views[self._tasks[key].rows, : len(vectors)] = torch.from_numpy(vectors).float()
        return EncodedViews(
            views=views,
            counts=counts,
            unreadable=self._unreadable,
            n_cached=self._n_cached,
            decode_seconds=self._decode_seconds,
            model_seconds=self._model_seconds,
        )
