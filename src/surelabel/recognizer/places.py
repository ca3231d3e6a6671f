"""Where in a picture a label is seen."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from surelabel.backbones import Backbone
from surelabel.data import FeatureCache
from surelabel.encoding import encode
from surelabel.errors import ConfigError, InputError
from surelabel.methods import of_patches
from surelabel.recognizer.looking import parts_for
from surelabel.recognizer.sources import Labelled, encoded
from surelabel.records import Array, Features, Images, LabelledFeatures


@torch.no_grad()
def places(
    source: Images | Labelled, method: Any, backbone: Backbone, cache: FeatureCache
) -> tuple[list[str], Array]:
    """The paths that could be read, and raw scores of patches ``(n, c, down, across)``.

    Raises:
        InputError: there are no pictures.
        ConfigError: the encoder gives no patch vectors in the joint space.
    """
    if isinstance(source, LabelledFeatures):
        raise InputError("Places are shown in pictures; ready-made vectors have none.")
    paths = [str(p) for p in source.paths]
    if hasattr(method, "maps"):
        found = encoded(source, method, backbone, cache)
        seen = method.maps(found.features)
        return [paths[r] for r in found.rows], seen.numpy().astype(np.float64)
    parts = backbone.dense_parts
    if not parts:
        raise ConfigError(
            f"{backbone.name} gives no patch vectors in the joint space, so it cannot "
            "show where a label is. Take an encoder that does, such as ViT-B-16/openai."
        )
    found = encode(backbone.dense(), paths, part=parts[0], cache=cache)
    scores = _of_patches(method, found.features)
    down, across = found.features.grid or (1, 1)
    maps = scores.transpose(1, 2).reshape(len(found.rows), -1, down, across)
    return [paths[r] for r in found.rows], maps.numpy().astype(np.float64)


def _of_patches(method: Any, features: Features) -> Tensor:
    """Scores ``(n, p, c)``, straight from the texts where the method looks at more than vectors."""
    if parts_for(method.needs) != ["images"] and hasattr(method, "wording"):
        scores: Tensor = method.wording(features.patches)
        return scores
    return of_patches(method, features)
