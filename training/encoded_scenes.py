"""Generated scenes straight to image vectors, without going through files."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from surelabel.backbones import Backbone
from surelabel.data.emoji import draw_sprites
from surelabel.data.scenes import Sampler, Scene, compose, labels
from surelabel.data.words import Word
from surelabel.records import Features

PIXELS = 128  # as the pictures that `surelabel scenes` writes
BATCH = 128


@dataclass(frozen=True)
class EncodedScenes:
    """What an encoder sees in ``n`` scenes.

    Attributes:
        features: ``pooled`` is ``(n, d)``.
        targets: Labels, ``(n, c)``.
        main: The main object's column, ``(n,)``.
        words: The vocabulary.
    """

    features: Features
    targets: npt.NDArray[np.bool_]
    main: npt.NDArray[np.int64]
    words: Sequence[Word]


def encode_scenes(
    backbone: Backbone, words: Sequence[Word], *, seed: int, count: int
) -> EncodedScenes:
    """Sample, compose and encode ``count`` scenes of ``words``."""
    sampler, sprites = Sampler(words, seed=seed), draw_sprites(words)
    pooled, targets, main = [], [], []
    for start in range(0, count, BATCH):
        scenes = [sampler(i) for i in range(start, min(start + BATCH, count))]
        pictures = compose(scenes, sprites, PIXELS)
        pooled.append(encode_pixels(backbone, pictures.pixels))
        targets.append(labels(scenes, pictures.seen, len(words)))
        main.append(_mains(scenes))
    return EncodedScenes(
        Features(torch.cat(pooled)), np.concatenate(targets), np.concatenate(main), words
    )


def encode_pixels(backbone: Backbone, pixels: torch.Tensor) -> torch.Tensor:
    """Unit vectors of composed pictures ``(n, 3, h, w)``, prepared as files are."""
    arrays = (pixels * 255).round().byte().permute(0, 2, 3, 1).numpy()
    prepared = torch.stack([backbone.prepare(Image.fromarray(a)) for a in arrays])
    return backbone.images(prepared).pooled


def _mains(scenes: list[Scene]) -> npt.NDArray[np.int64]:
    return np.array([int(s.words[0]) for s in scenes])
