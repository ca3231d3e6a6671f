"""Encode generated scenes in memory, without image files."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from surelabel.data.emoji_sprites import draw_sprites
from surelabel.data.scene_arrangement import Scene, SceneSampler
from surelabel.data.scene_words import Word
from surelabel.data.scenes import render_scenes, visible_scene_labels
from surelabel.encoders import Encoder
from surelabel.records import Features

PIXELS = 128  # side in pixels of the images that `surelabel scenes` writes
BATCH_SIZE = 128


@dataclass(frozen=True)
class EncodedScenes:
    """Features and annotations of ``n`` scenes.

    Attributes:
        features: Features of the images, whose ``pooled`` has the shape ``(n, d)``.
        targets: True for positive targets, ``(n, c)``.
        main: Column of the main object of each scene, ``(n,)``.
        words: Vocabulary, with one word for each column of ``targets``, length c.
    """

    features: Features
    targets: npt.NDArray[np.bool_]
    main: npt.NDArray[np.int64]
    words: Sequence[Word]


def encode_scenes(
    encoder: Encoder, words: Sequence[Word], *, seed: int, count: int
) -> EncodedScenes:
    """Sample, render and encode scenes.

    Args:
        encoder: Encoder of the images.
        words: Vocabulary of the scenes.
        seed: Seed of the scenes.
        count: Number of scenes.
    """
    sampler, sprites = SceneSampler(words, seed=seed), draw_sprites(words)
    pooled, targets, main = [], [], []
    for start in range(0, count, BATCH_SIZE):
        scenes = [sampler(i) for i in range(start, min(start + BATCH_SIZE, count))]
        images = render_scenes(scenes, sprites, PIXELS)
        pooled.append(encode_pixels(encoder, images.pixels))
        targets.append(visible_scene_labels(scenes, images.visible_shares, len(words)))
        main.append(_main_columns(scenes))
    return EncodedScenes(
        Features(torch.cat(pooled)), np.concatenate(targets), np.concatenate(main), words
    )


def encode_pixels(encoder: Encoder, pixels: torch.Tensor) -> torch.Tensor:
    """Return unit vectors of rendered images ``(n, 3, h, w)``, preprocessed like image files."""
    arrays = (pixels * 255).round().byte().permute(0, 2, 3, 1).numpy()
    preprocessed = torch.stack([encoder.preprocess(Image.fromarray(array)) for array in arrays])
    return encoder.encode_images(preprocessed).pooled


def _main_columns(scenes: list[Scene]) -> npt.NDArray[np.int64]:
    return np.array([int(scene.words[0]) for scene in scenes])
