"""Features of images in memory, without the cache."""

import time
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image

from surelabel.data.images import to_upright_rgb_image
from surelabel.encoders import Encoder
from surelabel.errors import InputError
from surelabel.features.feature_kinds import encode_feature_kind
from surelabel.features.feature_packing import pack_features, unpack_features
from surelabel.features.image_features import EncodedImages
from surelabel.features.view_features import image_hash_for_view_features


def encode_images_in_memory(
    encoder: Encoder, images: Sequence[Image.Image], *, kind: str = "images", batch_size: int = 64
) -> EncodedImages:
    """Compute features of images in memory, rounded to fp16 like the features of image files.

    Args:
        encoder: Image encoder.
        images: PIL images of any mode, not yet rotated by EXIF orientation.
        kind: Kind of features, as in :func:`encode_image_files`.
        batch_size: Number of images per forward pass.

    Raises:
        InputError: If ``images`` is empty.
    """
    if not images:
        raise InputError("images must have at least one image; got none. Give at least one image.")
    arrays, decode_seconds, model_seconds = [], 0.0, 0.0
    for first in range(0, len(images), batch_size):
        start = time.perf_counter()
        batch = images[first : first + batch_size]
        pixels = [encoder.preprocess(to_upright_rgb_image(image)) for image in batch]
        decoded = time.perf_counter()
        arrays.append(pack_features(kind, encode_feature_kind(encoder, kind, torch.stack(pixels))))
        decode_seconds += decoded - start
        model_seconds += time.perf_counter() - decoded
    return EncodedImages(
        features=unpack_features(kind, np.concatenate(arrays), encoder.width),
        rows=np.arange(len(images)),
        skipped=(),
        n_cached=0,
        decode_seconds=decode_seconds,
        model_seconds=model_seconds,
        hashes=tuple(image_hash_for_view_features(image) for image in images),
        encoder_passes=np.ones(len(images), dtype=np.int64),
    )
