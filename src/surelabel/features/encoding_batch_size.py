"""Compute the number of images that an encoder processes at once."""

import warnings
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from surelabel.counts import format_count
from surelabel.encoders import Encoder
from surelabel.errors import InputError
from surelabel.features.cache import Float16Array
from surelabel.features.feature_kinds import image_cache_fingerprint
from surelabel.features.gpu_memory import (
    batch_size_of_free_memory,
    free_gpu_memory,
    measure_gpu_memory,
)
from surelabel.features.resized_pixels import takes_raw_images

MAX_IMAGES = 64
MAX_GPU_IMAGES = 256
MAX_FLOPS = 4e11  # operations of a batch, which take 4 to 15 seconds on one CPU core
PATCH_PIXELS = 16**2

_gpu_batch_sizes: dict[tuple[str, torch.device], int] = {}  # constant during a process
_exhausted_batch_sizes: dict[tuple[str, str], int] = {}  # by fingerprint and kind of features


def encoding_batch_size(encoder: Encoder) -> int:
    """Return the number of images per forward pass for an encoder, from 1 to 256.

    On a CPU, a forward pass takes less than about 15 seconds with one core, because features can be
    written to the cache only between two passes. The floating-point operations of an image are
    estimated as 2 per parameter of the image encoder and patch of 16 by 16 pixels. ViT-B/16 at 224
    pixels has batches of 11 images, ViT-L/14 at 336 pixels has batches of 1 image, and small
    encoders have batches of 64 images. The number does not depend on the number of CPU cores or the
    time, so that features do not differ in their last digits between runs.

    On a CUDA device, the number is the largest power of two, at most 256, for which the images fit
    into 80 % of the free memory. The memory of an image is measured once in a process. If 8 images
    do not fit, the number is 1. On other devices, every encoder has batches of 64 images. If the
    graph of an exported recognizer preprocesses images of any size, the number is 1.

    Raises:
        ConfigError: If the encoder cannot encode images.
    """
    flops_per_patch = 2 * encoder.n_image_parameters  # raises an error if there are no images
    if takes_raw_images(encoder):
        return 1
    if encoder.device.type == "cuda":
        return _gpu_batch_size(encoder)
    if encoder.device.type != "cpu":
        return MAX_IMAGES
    height, width = encoder.preprocess_cfg["size"]
    flops = flops_per_patch * height * width / PATCH_PIXELS
    return max(1, int(min(MAX_IMAGES, MAX_FLOPS / max(flops, 1))))


def _gpu_batch_size(encoder: Encoder) -> int:
    key = image_cache_fingerprint(encoder), encoder.device
    if key not in _gpu_batch_sizes:
        sides = encoder.preprocess_cfg["size"]

        def encode(n_images: int) -> None:
            encoder.encode_images(torch.zeros(n_images, 3, *sides))

        _gpu_batch_sizes[key] = 1  # if 8 images do not fit
        with suppress(torch.OutOfMemoryError):
            use = measure_gpu_memory(encode, encoder.device)
            free = free_gpu_memory(encoder.device)
            _gpu_batch_sizes[key] = batch_size_of_free_memory(free, use, max_images=MAX_GPU_IMAGES)
    return _gpu_batch_sizes[key]


def encode_within_memory(
    encode: Callable[[Tensor], Float16Array], pixels: Tensor, *, fingerprint: str, kind: str
) -> Float16Array:
    """Return the features of images; halve the batch size if memory is exhausted.

    The smaller batch size also applies to later batches of the process. Features of smaller batches
    can differ in their last digits.

    Args:
        encode: Function from pixels to features, ``(n, …)``.
        pixels: Pixels of n images, ``(n, 3, height, width)``.
        fingerprint: Fingerprint of the encoder.
        kind: Kind of the features.

    Raises:
        InputError: If the memory is exhausted by one image.
    """
    key = fingerprint, kind
    while True:
        size = min(_exhausted_batch_sizes.get(key, len(pixels)), len(pixels))
        with suppress(torch.OutOfMemoryError):
            parts = [encode(part) for part in pixels.split(size)]
            return np.concatenate(parts) if len(parts) > 1 else parts[0]
        if size == 1:
            raise InputError(
                "Encoding needs memory for at least one image at a time; the memory of the device "
                "is exhausted. Free memory, or use a smaller encoder or image size."
            )
        _exhausted_batch_sizes[key] = size // 2
        warnings.warn(
            f"The memory of the device is exhausted; encoding continues with at most "
            f"{format_count(size // 2, 'image')} per forward pass.",
            stacklevel=2,
        )
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
