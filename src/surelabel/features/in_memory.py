"""Compute features of images in memory (PIL images or bytes of files), without the cache."""

import time
from collections.abc import Sequence

import numpy as np
from PIL import Image

from surelabel.counts import format_count
from surelabel.data.images import open_image, to_upright_rgb_image
from surelabel.encoders import Encoder
from surelabel.errors import DataError, InputError, NoReadableImage
from surelabel.features.feature_kinds import encode_feature_kind
from surelabel.features.feature_packing import pack_features, unpack_features
from surelabel.features.image_features import EncodedImages
from surelabel.features.resized_pixels import (
    normalize_resized,
    resize_for_encoder,
    takes_raw_images,
)
from surelabel.features.view_features import image_hash_for_view_features
from surelabel.records import SkippedImage


def name_of_image_in_memory(row: int) -> str:
    """Return the name of an image in memory, such as ``image 3``, in place of a path."""
    return f"image {row}"


def encode_images_in_memory(
    encoder: Encoder,
    images: Sequence[Image.Image | bytes],
    *,
    kind: str = "images",
    batch_size: int = 64,
    strict: bool = False,
) -> EncodedImages:
    """Compute features of images in memory, rounded to fp16 like the features of image files.

    Args:
        encoder: Image encoder.
        images: PIL images of any mode, not yet rotated by EXIF orientation, or contents of image
            files as bytes.
        kind: Kind of features, as in :func:`encode_image_files`.
        batch_size: Number of images per forward pass. If the encoder preprocesses images itself,
            there is one image per forward pass.
        strict: Whether bytes that cannot be decoded raise an error instead of being skipped.

    Raises:
        InputError: If ``images`` is empty.
        NoReadableImage: If no image can be decoded.
        DataError: If ``strict`` is True and an image cannot be decoded. The message contains the
            row number and the reason for each image that cannot be decoded.
        ConfigError: If the kind does not exist, or if the encoder does not support the kind.
    """
    if not images:
        raise InputError(
            "images must contain at least one image; got none. Give one or more images."
        )
    batch_size = 1 if takes_raw_images(encoder) else batch_size
    arrays, decode_seconds, model_seconds = [], 0.0, 0.0
    reasons: dict[int, str] = {}
    for first in range(0, len(images), batch_size):
        start = time.perf_counter()
        pixels = []
        for row in range(first, min(first + batch_size, len(images))):
            try:
                image = _open_image_in_memory(images[row], min_side=encoder.input_side)
                pixels.append(resize_for_encoder(encoder, image))
            except DataError as error:
                reasons[row] = str(error)
        decoded = time.perf_counter()
        decode_seconds += decoded - start
        if pixels:
            batch = normalize_resized(encoder, np.stack(pixels))
            features = encode_feature_kind(encoder, kind, batch)
            arrays.append(pack_features(kind, features))
            model_seconds += time.perf_counter() - decoded
    skipped = tuple(SkippedImage(name_of_image_in_memory(row), why) for row, why in reasons.items())
    if skipped and (strict or not arrays):
        problems = "; ".join(f"{image.path}: {image.reason}" for image in skipped)
        message = (
            f"{len(skipped)} of {format_count(len(images), 'image')} cannot be decoded: "
            f"{problems}. Remove or replace these images."
        )
        raise DataError(message) if arrays else NoReadableImage(message, skipped)
    rows = np.array([row for row in range(len(images)) if row not in reasons])
    return EncodedImages(
        features=unpack_features(kind, np.concatenate(arrays), encoder.width),
        rows=rows,
        skipped=skipped,
        n_cached=0,
        decode_seconds=decode_seconds,
        model_seconds=model_seconds,
        hashes=tuple(image_hash_for_view_features(images[row]) for row in rows),
        encoder_passes=np.ones(len(rows), dtype=np.int64),
    )


def _open_image_in_memory(image: Image.Image | bytes, *, min_side: int) -> Image.Image:
    """Return an upright RGB image; bytes are decoded like image files."""
    if isinstance(image, bytes):
        return open_image(image, min_side=min_side)
    return to_upright_rgb_image(image)
