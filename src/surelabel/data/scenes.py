"""Render scenes: synthetic images with complete labels and boxes.

Scenes are rendered in batches, so that they can be generated during training.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.data.emoji_sprites import SIDES, Sprites
from surelabel.data.scene_arrangement import MAX_OBJECTS, MIN_VISIBLE_SHARE, Scene

OCTAVES = (2, 5, 12, 28)  # cells per side of each octave of background noise


@dataclass(frozen=True)
class RenderedScenes:
    """Images of scenes, with the visible fractions and bounding boxes of their objects.

    Attributes:
        pixels: Images in [0, 1], ``(n, 3, h, w)``.
        visible_shares: Visible fraction of each object in [0, 1], ``(n, MAX_OBJECTS)``. Entries
            beyond the last object of a scene are 0.
        boxes: Bounding boxes of the visible parts, ``(n, MAX_OBJECTS, 4)``: left, top, right and
            bottom as fractions of the image side. A pixel is in the box if the visible opacity of
            the object is above 0.25. If there is no such pixel, the box is NaN.
    """

    pixels: Tensor
    visible_shares: Tensor
    boxes: Tensor


def render_scenes(scenes: Sequence[Scene], sprites: Sprites, pixels: int) -> RenderedScenes:
    """Render scenes as square images, nearest objects first.

    Each object is multiplied by the transmittance of the nearer objects. The visible fraction of an
    object is the remaining opaque area divided by the full area of the object.

    Args:
        scenes: Scenes, length n.
        sprites: Sprites of the words in the vocabulary.
        pixels: Side length of the images in pixels.
    """
    n = len(scenes)
    image, transmittance = torch.zeros(n, 3, pixels, pixels), torch.ones(n, 1, pixels, pixels)
    visible_shares = torch.zeros(n, MAX_OBJECTS)
    boxes = torch.full((n, MAX_OBJECTS, 4), torch.nan)
    depth_orders = [np.argsort(s.depths, kind="stable") for s in scenes]
    for layer in range(MAX_OBJECTS):
        for level in range(len(SIDES)):
            rows, indices = _select_scene_layer_objects(
                layer, level, scenes, depth_orders, sprites, pixels
            )
            if not rows:
                continue
            objects = [(scenes[r], o) for r, o in zip(rows, indices, strict=True)]
            words = torch.tensor([int(s.words[o]) for s, o in objects])
            rgba = _warp_sprites_into_scenes(objects, sprites.levels[level][words], pixels)
            row_index = torch.tensor(rows)
            visible = rgba * transmittance[row_index]
            image[row_index] += visible[:, :3]
            transmittance[row_index] *= 1 - rgba[:, 3:]
            sides = torch.tensor([float(s.sides[o]) for s, o in objects])
            full_area = sprites.coverage[words] * (sides * pixels) ** 2
            visible_area = visible[:, 3].sum(dim=(1, 2))
            visible_shares[row_index, indices] = (visible_area / full_area).clamp(max=1)
            boxes[row_index, indices] = _scene_bounding_boxes(visible[:, 3] > 0.25)
    image += transmittance * _render_scene_backgrounds(scenes, pixels)
    return RenderedScenes(image.clamp(0, 1), visible_shares, boxes)


def visible_scene_labels(
    scenes: Sequence[Scene], visible_shares: Tensor, classes: int
) -> npt.NDArray[np.bool_]:
    """Return Boolean targets of scenes, ``(n, classes)``: True for words of visible objects.

    An object is visible if its visible fraction is at least ``MIN_VISIBLE_SHARE``.

    Args:
        scenes: Scenes, length n.
        visible_shares: Visible fraction of each object in [0, 1], ``(n, MAX_OBJECTS)``.
        classes: Number of words in the vocabulary.
    """
    targets = np.zeros((len(scenes), classes), dtype=bool)
    for row, scene, shares in zip(targets, scenes, visible_shares.numpy(), strict=True):
        row[scene.words[shares[: len(scene.words)] >= MIN_VISIBLE_SHARE]] = True
    return targets


def _select_scene_layer_objects(
    layer: int,
    level: int,
    scenes: Sequence[Scene],
    depth_orders: Sequence[npt.NDArray[np.int64]],
    sprites: Sprites,
    pixels: int,
) -> tuple[list[int], list[int]]:
    """Return the scene and object indices of a depth layer for one sprite pyramid level."""
    rows, indices = [], []
    for row, (scene, order) in enumerate(zip(scenes, depth_orders, strict=True)):
        if layer < len(order):
            index = int(order[layer])
            if sprites.nearest(float(scene.sides[index]) * pixels) == level:
                rows.append(row)
                indices.append(index)
    return rows, indices


def _warp_sprites_into_scenes(
    objects: Sequence[tuple[Scene, int]], sprites: Tensor, pixels: int
) -> Tensor:
    """Rotate, scale, tint and translate each sprite on an empty image, ``(n, 4, h, w)``."""
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
    rgba = F.grid_sample(sprites, grid, align_corners=False)
    colour = torch.minimum(rgba[:, :3] * tint[:, :, None, None], rgba[:, 3:])
    return torch.cat([colour, rgba[:, 3:]], 1)


def _scene_bounding_boxes(masks: Tensor) -> Tensor:
    """Return left, top, right and bottom of masks ``(n, h, w)`` as fractions of the side.

    If a mask is empty, the box is NaN.
    """
    columns, rows = masks.any(dim=1), masks.any(dim=2)
    boxes = torch.stack(
        [
            columns.float().argmax(1),
            rows.float().argmax(1),
            columns.shape[1] - columns.flip(1).float().argmax(1),
            rows.shape[1] - rows.flip(1).float().argmax(1),
        ],
        1,
    )
    boxes = boxes / masks.shape[-1]
    boxes[~columns.any(dim=1)] = torch.nan
    return boxes


def _render_scene_backgrounds(scenes: Sequence[Scene], pixels: int) -> Tensor:
    """Return backgrounds ``(n, 3, h, w)`` of a random colour, octaves of noise, and stripes."""
    rngs = [np.random.default_rng(s.background) for s in scenes]
    base = np.stack([r.uniform(0.15, 0.85, (3, 1, 1)) for r in rngs])
    image = torch.from_numpy(base).float().expand(-1, -1, pixels, pixels).clone()
    for octave, cells in enumerate(OCTAVES):
        strength = np.stack([r.uniform(0, 0.45 / (octave + 1)) for r in rngs])[:, None, None, None]
        noise = np.stack([r.uniform(-1, 1, (3, cells, cells)) for r in rngs])
        cells_noise = torch.from_numpy((noise * strength).astype(np.float32))
        image += F.interpolate(cells_noise, size=pixels, mode="bilinear")
    position = (torch.arange(pixels) + 0.5) / pixels
    frequency = np.stack([r.normal(0, 9, 2) for r in rngs]).astype(np.float32) * 2 * np.pi
    amplitude = np.stack([r.uniform(-0.18, 0.18, (3, 1, 1)) for r in rngs]).astype(np.float32)
    x_frequency, y_frequency = torch.from_numpy(frequency[:, :, None, None]).unbind(1)
    stripes = torch.sin(
        x_frequency * position[None, None, :] + y_frequency * position[None, :, None]
    )
    image += torch.from_numpy(amplitude) * stripes[:, None]
    return image.clamp(0, 1)
