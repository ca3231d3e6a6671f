"""Pictures in memory become features; nothing is cached."""

import time
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image

from surelabel.backbones import Backbone
from surelabel.data.pictures import upright
from surelabel.encoding.packing import packed, unpacked
from surelabel.encoding.parts import seen
from surelabel.encoding.pictures import Encoded
from surelabel.encoding.views import content_of
from surelabel.errors import InputError


def encode_pictures(
    backbone: Backbone, pictures: Sequence[Image.Image], *, part: str = "images", batch: int = 64
) -> Encoded:
    """Encode pictures in memory, rounded as those from files are.

    Args:
        backbone: The encoder.
        pictures: Of any mode, not turned yet as their EXIF says.
        part: As of :func:`encode`.
        batch: Pictures the encoder sees at once.

    Raises:
        InputError: there are none.
    """
    if not pictures:
        raise InputError("There are no pictures to encode. Give one or more.")
    arrays, decoding, seeing = [], 0.0, 0.0
    for first in range(0, len(pictures), batch):
        start = time.perf_counter()
        prepared = [backbone.prepare(upright(p)) for p in pictures[first : first + batch]]
        ready = time.perf_counter()
        arrays.append(packed(part, seen(backbone, part, torch.stack(prepared))))
        decoding, seeing = decoding + ready - start, seeing + time.perf_counter() - ready
    return Encoded(
        features=unpacked(part, np.concatenate(arrays), backbone.width),
        rows=np.arange(len(pictures)),
        skipped=(),
        cached=0,
        decode_seconds=decoding,
        model_seconds=seeing,
        hashes=tuple(content_of(p) for p in pictures),
        passes=np.ones(len(pictures), dtype=np.int64),
    )
