"""Text features with a cache on disk, by encoder, prompts and label."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.features.cache import FeatureCache, text_cache_key

KIND = "texts"


def add_text_cache(encoder: Encoder, cache: FeatureCache) -> Encoder:
    """Return the encoder with a cache for its label vectors."""
    if isinstance(encoder, _TextCachingEncoder):
        return encoder
    return cast(Encoder, _TextCachingEncoder(encoder, cache))


class _TextCachingEncoder:
    def __init__(self, encoder: Encoder, cache: FeatureCache):
        self._encoder, self._cache = encoder, cache

    def __getattr__(self, name: str) -> Any:
        if name == "_encoder":  # undefined while an instance is copied
            raise AttributeError(name)
        return getattr(self._encoder, name)

    def encode_labels(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Return unit vectors of labels, ``(c, d)``, rounded to fp16 also on the first call."""
        keys = {name: text_cache_key("\n".join(templates), name) for name in names}
        cached = self._cache.get(self._encoder.fingerprint, KIND, keys.values())
        missing = [name for name, key in keys.items() if key not in cached]
        if missing:
            vectors = self._encoder.encode_labels(missing, templates)
            arrays = vectors.cpu().numpy().astype(np.float16)
            computed = {keys[name]: array for name, array in zip(missing, arrays, strict=True)}
            self._cache.put(self._encoder.fingerprint, KIND, computed)
            cached = cached | computed
        stacked = np.stack([cached[keys[name]] for name in names])
        return F.normalize(torch.from_numpy(stacked).float(), dim=-1)
