"""Texts are encoded once: by encoder, prompts and name they are kept on disk."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.backbones import Backbone
from surelabel.data.cache import FeatureCache, text_key

KIND = "texts"


def remembering(backbone: Backbone, cache: FeatureCache) -> Backbone:
    """The same backbone, whose ``texts`` come from the cache where they were encoded before."""
    if isinstance(backbone, _Remembering):
        return backbone
    return cast(Backbone, _Remembering(backbone, cache))


class _Remembering:
    def __init__(self, backbone: Backbone, cache: FeatureCache):
        self._backbone, self._cache = backbone, cache

    def __getattr__(self, name: str) -> Any:
        if name == "_backbone":  # not there yet while a copy is being made
            raise AttributeError(name)
        return getattr(self._backbone, name)

    def texts(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Unit vectors ``(c, d)``; rounded to fp16 also the first time, so that they stay equal."""
        keys = {name: text_key("\n".join(templates), name) for name in names}
        kept = self._cache.get(self._backbone.fingerprint, KIND, keys.values())
        fresh = [name for name, key in keys.items() if key not in kept]
        if fresh:
            vectors = self._backbone.texts(fresh, templates).cpu().numpy().astype(np.float16)
            made = {keys[name]: vector for name, vector in zip(fresh, vectors, strict=True)}
            self._cache.put(self._backbone.fingerprint, KIND, made)
            kept = kept | made
        stacked = np.stack([kept[keys[name]] for name in names])
        return F.normalize(torch.from_numpy(stacked).float(), dim=-1)
