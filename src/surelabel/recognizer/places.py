"""Where in a picture a label is seen."""

from typing import Any

import numpy as np
import torch

from surelabel.backbones import Backbone
from surelabel.data import FeatureCache
from surelabel.encoding import encode
from surelabel.errors import ConfigError, InputError
from surelabel.methods import of_patches
from surelabel.recognizer.sources import Labelled
from surelabel.records import Array, Images, LabelledFeatures


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
    parts = backbone.dense_parts
    if not parts:
        raise ConfigError(
            f"{backbone.name} gives no patch vectors in the joint space, so it cannot "
            "show where a label is. Take an encoder that does, such as ViT-B-16/openai."
        )
    paths = [str(p) for p in source.paths]
    found = encode(backbone.dense(), paths, part=parts[0], cache=cache)
    with torch.no_grad():
        scores = of_patches(method, found.features)
    down, across = found.features.grid or (1, 1)
    maps = scores.transpose(1, 2).reshape(len(found.rows), -1, down, across)
    return [paths[r] for r in found.rows], maps.numpy().astype(np.float64)
