"""Where in a picture a label is seen."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surelabel.backbones import Backbone, prompt_templates
from surelabel.data import FeatureCache
from surelabel.encoding import encode
from surelabel.errors import ConfigError, InputError
from surelabel.methods import of_patches
from surelabel.methods.wording import spelled
from surelabel.recognizer.looking import parts_of
from surelabel.recognizer.sources import Labelled, encoded
from surelabel.records import Array, Features, Images, LabelledFeatures


@dataclass(frozen=True)
class Places:
    """What the regions of pictures say.

    Attributes:
        paths: The pictures that could be read.
        maps: Raw scores of regions, ``(n, c, down, across)``.
        presence: How much each region counts, ``(n, down, across)``; None where all count alike.
        after: Cosines of regions with names, ``(n, c, down, across)``; None where a method has
            no regions in the joint space.
    """

    paths: list[str]
    maps: Array
    presence: Array | None = None
    after: Array | None = None


@torch.no_grad()
def places(
    source: Images | Labelled, method: Any, backbone: Backbone, cache: FeatureCache
) -> Places:
    """How strongly each label is seen in each region: as the method says, else as patches do.

    Raises:
        InputError: there are no pictures.
        ConfigError: the encoder gives no patch vectors in the joint space.
    """
    if isinstance(source, LabelledFeatures):
        raise InputError("Places are shown in pictures; ready-made vectors have none.")
    paths = [str(p) for p in source.paths]
    if hasattr(method, "maps"):
        found = encoded(source, method, backbone, cache)
        return Places(
            [paths[r] for r in found.rows],
            _array(method.maps(found.features)),
            _said(method, "presence", found.features),
            _said(method, "similarities", found.features),
        )
    check_places(method, backbone)
    found = encode(backbone.dense(), paths, part=backbone.dense_parts[0], cache=cache)
    scores = _of_patches(method, found.features)
    return Places([paths[r] for r in found.rows], _on_grid(scores, found.features))


def check_places(method: Any, backbone: Backbone) -> None:
    """Refuse a recognizer that cannot say where.

    Raises:
        ConfigError: the method makes no maps, and the encoder no patch vectors.
    """
    if not hasattr(method, "maps") and not backbone.dense_parts:
        raise ConfigError(
            f"{backbone.name} gives no patch vectors in the joint space, so it cannot "
            "show where a label is. Take an encoder that does, such as ViT-B-16/openai."
        )


@torch.no_grad()
def frozen(
    paths: list[str], names: list[str], backbone: Backbone, cache: FeatureCache
) -> Array | None:
    """Cosines of the encoder's plain patches with names, ``(n, c, down, across)``.

    None where it gives no patches.

    Raises:
        DataError: a picture cannot be read.
    """
    if "patches" not in backbone.dense_parts:
        return None
    found = encode(backbone.dense(), paths, part="patches", cache=cache, strict=True)
    assert found.features.patches is not None
    texts = spelled(backbone, names, prompt_templates("one"))
    return _on_grid(found.features.patches @ texts.T, found.features)


def _said(method: Any, what: str, features: Features) -> Array | None:
    """What a method says of regions beside its maps, where it does."""
    return _array(getattr(method, what)(features)) if hasattr(method, what) else None


def _of_patches(method: Any, features: Features) -> Tensor:
    """Scores ``(n, p, c)``, straight from the texts where the method looks at more than vectors."""
    if parts_of(method) != ["images"] and hasattr(method, "wording"):
        scores: Tensor = method.wording(features.patches)
        return scores
    return of_patches(method, features)


def _on_grid(scores: Tensor, features: Features) -> Array:
    """From ``(n, p, c)`` to ``(n, c, down, across)``."""
    return _array(scores.transpose(1, 2).unflatten(2, features.grid or ()))


def _array(values: Tensor) -> Array:
    return values.cpu().numpy().astype(np.float64)
