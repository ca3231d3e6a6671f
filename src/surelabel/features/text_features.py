"""Cache text features of labels on disk, by encoder, prompt templates and label."""

import logging
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.encoders.image_only.exported_model import ExportedModel
from surelabel.encoders.image_only.precomputed_features import PrecomputedFeatures
from surelabel.features.cache import FeatureCache, feature_cache_key_of_text

KIND = "texts"
MIN_LOGGED_TEXTS = 32  # fewer texts take less than a second
_log = logging.getLogger(__name__)


def add_text_feature_cache(encoder: Encoder, cache: FeatureCache) -> Encoder:
    """Return an encoder that stores label vectors in the cache and reads cached label vectors.

    Encoders of precomputed features, exported recognizers, and encoders that already have a cache
    are returned unchanged.
    """
    if isinstance(encoder, _TextFeatureCachingEncoder | PrecomputedFeatures | ExportedModel):
        return encoder  # other programs and exported recognizers have no text tower
    return cast(Encoder, _TextFeatureCachingEncoder(encoder, cache))


def without_text_feature_cache(encoder: Encoder) -> Encoder:
    """Return the encoder to which ``add_text_feature_cache`` added a cache."""
    return encoder.uncached if isinstance(encoder, _TextFeatureCachingEncoder) else encoder


class _TextFeatureCachingEncoder:
    def __init__(self, encoder: Encoder, cache: FeatureCache):
        self.uncached, self._cache = encoder, cache

    def __getattr__(self, name: str) -> Any:
        if name == "uncached":  # undefined while an instance is copied
            raise AttributeError(name)
        return getattr(self.uncached, name)

    def encode_labels(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Return unit vectors of labels, ``(c, d)``, computed from vectors rounded to fp16."""
        keys = {name: feature_cache_key_of_text("\n".join(templates), name) for name in names}
        cached = self._cache.get(self.uncached.fingerprint, KIND, keys.values())
        missing = [name for name, key in keys.items() if key not in cached]
        if missing:
            n_texts = len(missing) * len(templates)
            if n_texts >= MIN_LOGGED_TEXTS:
                _log.info("Encoding %s texts with %s", f"{n_texts:,}", self.uncached.name)
            vectors = self.uncached.encode_labels(missing, templates)
            arrays = vectors.cpu().numpy().astype(np.float16)
            computed = {keys[name]: array for name, array in zip(missing, arrays, strict=True)}
            self._cache.put(self.uncached.fingerprint, KIND, computed)
            cached = cached | computed
        stacked = np.stack([cached[keys[name]] for name in names])
        return F.normalize(torch.from_numpy(stacked).float(), dim=-1)
