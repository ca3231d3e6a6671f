"""Scenes: generated pictures whose truth is complete, the wind tunnel of this project.

A scene is sampled (which words, where, how), composed (pixels) and described (captions). The
same seed and index give the same scene on every run; composing works on batches, so that
training can do it inside its loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.data.emoji import SIDES, Sprites
from surelabel.data.words import Word

MOST_OBJECTS = 7  # one main object and up to six small ones
SMALL_COUNT = (0.13, 0.20, 0.22, 0.19, 0.13, 0.08, 0.05)  # chance of 0, 1 … 6 small objects
HIDDEN = 0.3  # an object of which less than this share is seen is no label
MAIN_FROM_THEME, SMALL_FROM_THEME = 1.0, 0.7
OCTAVES = (2, 5, 12, 28)  # cells a side of each layer of background noise


@dataclass(frozen=True)
class Scene:
    """What one picture shows; row 0 of every array is the main object.

    Attributes:
        words: Indices into the vocabulary, ``(k,)``.
        centres: Place of each middle, ``(k, 2)``, x and y as shares of the side.
        sides: Size of each object as a share of the side, ``(k,)``.
        angles: Rotation in radians, ``(k,)``.
        mirrored: True where the object is flipped left to right, ``(k,)``.
        tints: Gain of red, green and blue, ``(k, 3)``.
        depths: Smaller is nearer, ``(k,)``.
        theme: What the things have in common.
        background: Seed of the background.
    """

    words: npt.NDArray[np.int64]
    centres: npt.NDArray[np.float32]
    sides: npt.NDArray[np.float32]
    angles: npt.NDArray[np.float32]
    mirrored: npt.NDArray[np.bool_]
    tints: npt.NDArray[np.float32]
    depths: npt.NDArray[np.float32]
    theme: str
    background: int


@dataclass(frozen=True)
class Pictures:
    """Composed scenes.

    Attributes:
        pixels: ``(n, 3, h, w)`` in [0, 1].
        seen: Share of each object that is visible, ``(n, MOST_OBJECTS)``; 0 beyond the last.
        boxes: Visible extent, ``(n, MOST_OBJECTS, 4)``: left, top, right, bottom as shares of the
            side; NaN where nothing is visible.
    """

    pixels: Tensor
    seen: Tensor
    boxes: Tensor


class Sampler:
    """Draw scenes from a vocabulary, so that labels co-occur by theme as in life.

    Args:
        words: What may be shown.
        seed: Same seed and index, same scene.
        long_tail: Word frequencies fall as 1/rank inside each theme, and over the themes.
    """

    def __init__(self, words: Sequence[Word], *, seed: int, long_tail: bool = False):
        self.words, self.seed = words, seed
        self._themes = list(dict.fromkeys(w.theme for w in words))
        self._members = [
            np.array([i for i, w in enumerate(words) if w.theme == theme]) for theme in self._themes
        ]
        self._theme_chance = _zipf(len(self._themes), long_tail)
        if not long_tail:  # every word equally often the main object
            sizes = np.array([len(m) for m in self._members])
            self._theme_chance = sizes / sizes.sum()
        self._chance = [_zipf(len(m), long_tail) for m in self._members]
        self._anywhere = np.zeros(len(words))
        for share, members, chance in zip(
            self._theme_chance, self._members, self._chance, strict=True
        ):
            self._anywhere[members] = share * chance

    def __call__(self, index: int) -> Scene:
        """The scene with this index."""
        rng = np.random.default_rng([self.seed, index])
        theme = int(rng.choice(len(self._themes), p=self._theme_chance))
        small = int(rng.choice(len(SMALL_COUNT), p=SMALL_COUNT))
        k = 1 + small
        near = rng.random(k) < SMALL_FROM_THEME
        near[0] = True
        inside = rng.choice(self._members[theme], size=k, p=self._chance[theme])
        outside = rng.choice(len(self.words), size=k, p=self._anywhere)
        sides = np.concatenate([rng.uniform(0.42, 0.60, 1), rng.uniform(0.16, 0.28, small)])
        reach = np.where(np.arange(k) == 0, 0.25, 0.44)[:, None]
        depths = rng.random(k)
        depths[0] = rng.uniform(0.3, 1.0)  # the main object is seldom in front of everything
        return Scene(
            words=np.where(near, inside, outside),
            centres=(0.5 + reach * rng.uniform(-1, 1, (k, 2))).astype(np.float32),
            sides=sides.astype(np.float32),
            angles=rng.uniform(-0.5, 0.5, k).astype(np.float32),
            mirrored=rng.random(k) < 0.5,
            tints=(rng.uniform(0.8, 1.2, (k, 1)) * rng.uniform(0.85, 1.15, (k, 3))).astype(
                np.float32
            ),
            depths=depths.astype(np.float32),
            theme=self._themes[theme],
            background=int(rng.integers(2**31)),
        )


def compose(scenes: Sequence[Scene], sprites: Sprites, pixels: int) -> Pictures:
    """Paint ``scenes`` as pictures of ``pixels`` a side, nearest object first.

    Each layer shows through what the nearer ones left open, so that the share of an object that
    is seen comes for free.
    """
    n = len(scenes)
    picture, open_ = torch.zeros(n, 3, pixels, pixels), torch.ones(n, 1, pixels, pixels)
    seen, boxes = torch.zeros(n, MOST_OBJECTS), torch.full((n, MOST_OBJECTS, 4), torch.nan)
    orders = [np.argsort(s.depths, kind="stable") for s in scenes]
    for layer in range(MOST_OBJECTS):
        for level in range(len(SIDES)):
            rows, objects = _at(layer, level, scenes, orders, sprites, pixels)
            if not rows:
                continue
            things = [(scenes[r], o) for r, o in zip(rows, objects, strict=True)]
            words = torch.tensor([int(s.words[o]) for s, o in things])
            drawn = _place(things, sprites.levels[level][words], pixels)
            here = torch.tensor(rows)
            shown = drawn * open_[here]
            picture[here] += shown[:, :3]
            open_[here] *= 1 - drawn[:, 3:]
            sides = torch.tensor([float(s.sides[o]) for s, o in things])
            full = sprites.coverage[words] * (sides * pixels) ** 2
            seen[here, objects] = (shown[:, 3].sum(dim=(1, 2)) / full).clamp(max=1)
            boxes[here, objects] = _boxes(shown[:, 3] > 0.25)
    picture += open_ * _backgrounds(scenes, pixels)
    return Pictures(picture.clamp(0, 1), seen, boxes)


def labels(scenes: Sequence[Scene], seen: Tensor, classes: int) -> npt.NDArray[np.bool_]:
    """Which words count as labels, ``(n, classes)``: those of which enough is visible."""
    targets = np.zeros((len(scenes), classes), dtype=bool)
    for row, scene, share in zip(targets, scenes, seen.numpy(), strict=True):
        row[scene.words[share[: len(scene.words)] >= HIDDEN]] = True
    return targets


def _zipf(count: int, long_tail: bool) -> npt.NDArray[np.float64]:
    weights = 1 / np.arange(1, count + 1) if long_tail else np.ones(count)
    chance: npt.NDArray[np.float64] = weights / weights.sum()
    return chance


def _at(
    layer: int,
    level: int,
    scenes: Sequence[Scene],
    orders: Sequence[npt.NDArray[np.int64]],
    sprites: Sprites,
    pixels: int,
) -> tuple[list[int], list[int]]:
    """Rows that have an object in this layer whose size asks for this level of the pyramid."""
    rows, objects = [], []
    for row, (scene, order) in enumerate(zip(scenes, orders, strict=True)):
        if layer < len(order):
            chosen = int(order[layer])
            if sprites.nearest(float(scene.sides[chosen]) * pixels) == level:
                rows.append(row)
                objects.append(chosen)
    return rows, objects


def _place(objects: Sequence[tuple[Scene, int]], sprites: Tensor, pixels: int) -> Tensor:
    """Turn, shrink, tint and move each sprite onto an empty picture, ``(n, 4, h, w)``."""
    angle = torch.tensor([float(s.angles[o]) for s, o in objects])
    side = torch.tensor([float(s.sides[o]) for s, o in objects])
    flip = torch.tensor([-1.0 if s.mirrored[o] else 1.0 for s, o in objects])
    centre = torch.from_numpy(np.stack([s.centres[o] for s, o in objects])) * 2 - 1
    tint = torch.from_numpy(np.stack([s.tints[o] for s, o in objects]))
    cos, sin = angle.cos() / side, angle.sin() / side
    x, y = centre.unbind(1)
    affine = torch.stack(
        [
            torch.stack([flip * cos, -flip * sin, flip * (sin * y - cos * x)], 1),
            torch.stack([sin, cos, -(sin * x + cos * y)], 1),
        ],
        1,
    )
    grid = F.affine_grid(affine, [len(objects), 4, pixels, pixels], align_corners=False)
    drawn = F.grid_sample(sprites, grid, align_corners=False)
    colour = torch.minimum(drawn[:, :3] * tint[:, :, None, None], drawn[:, 3:])
    return torch.cat([colour, drawn[:, 3:]], 1)


def _boxes(shown: Tensor) -> Tensor:
    """Left, top, right, bottom of the true part of each mask ``(n, h, w)``, as shares."""
    across, down = shown.any(dim=1), shown.any(dim=2)
    boxes = torch.stack(
        [
            across.float().argmax(1),
            down.float().argmax(1),
            across.shape[1] - across.flip(1).float().argmax(1),
            down.shape[1] - down.flip(1).float().argmax(1),
        ],
        1,
    )
    boxes = boxes / shown.shape[-1]
    boxes[~across.any(dim=1)] = torch.nan
    return boxes


def _backgrounds(scenes: Sequence[Scene], pixels: int) -> Tensor:
    """Noise in octaves and stripes over two colours, ``(n, 3, h, w)``."""
    rngs = [np.random.default_rng(s.background) for s in scenes]
    base = np.stack([r.uniform(0.15, 0.85, (3, 1, 1)) for r in rngs])
    picture = torch.from_numpy(base).float().expand(-1, -1, pixels, pixels).clone()
    for octave, cells in enumerate(OCTAVES):
        strength = np.stack([r.uniform(0, 0.45 / (octave + 1)) for r in rngs])[:, None, None, None]
        noise = np.stack([r.uniform(-1, 1, (3, cells, cells)) for r in rngs])
        fine = torch.from_numpy((noise * strength).astype(np.float32))
        picture += F.interpolate(fine, size=pixels, mode="bilinear")
    place = (torch.arange(pixels) + 0.5) / pixels
    wave = np.stack([r.normal(0, 9, 2) for r in rngs]).astype(np.float32) * 2 * np.pi
    height = np.stack([r.uniform(-0.18, 0.18, (3, 1, 1)) for r in rngs]).astype(np.float32)
    across, down = torch.from_numpy(wave[:, :, None, None]).unbind(1)
    stripes = torch.sin(across * place[None, None, :] + down * place[None, :, None])
    picture += torch.from_numpy(height) * stripes[:, None]
    return picture.clamp(0, 1)
