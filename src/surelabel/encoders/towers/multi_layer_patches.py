"""Compute patch features from several layers of an image tower, in at most 8 by 8 cells."""

import math
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders.towers.patch_features import (
    joint_space_patch_features,
    project_self_aware_patches,
    self_aware_output_of_block,
    self_aware_patch_features,
)
from surelabel.encoders.towers.trunk import trunk_features
from surelabel.encoders.towers.vit_towers import VitTower, vit_block_inputs, vit_tower
from surelabel.records import Features

MAX_GRID_SIDE = 8  # rows and columns of cells; a cell of a ViT-B has 9 kB in the cache
WINDOW = 0.2  # height and width of a neighbourhood, as fractions of the image
ATTENTION_LAYERS = 3  # last blocks whose self-aware attention is used
TOKEN_LAYERS = 2  # last blocks whose output tokens are used


def multi_layer_patch_features(visual: Any, pixels: Tensor) -> Features:
    """Return patch vectors in the joint space, and the outputs of several layers at each patch.

    Patches are averaged in the cells of a grid of at most 8 by 8 cells.

    - A ViT: the layers are the outputs of self-aware attention in the last three blocks, and the
      output tokens of the last two blocks. The patch vectors are the projected sum of the three
      attention outputs. If the ViT pools its patches, the patch vectors are the self-aware patch
      vectors.
    - Another tower: the only layer contains the trunk tokens. The patch vectors are computed by
      :func:`self_aware_patch_features`.

    Args:
        visual: Image tower of an open_clip model.
        pixels: Preprocessed images, ``(n, 3, h, w)``.

    Returns:
        Features with the unit vectors ``pooled`` ``(n, d)``, the unit vectors ``patches``
        ``(n, p, d)`` of ``p`` cells of each image, the outputs of ``l`` layers, ``multi_layer``
        ``(n, p, l, w)``, and the numbers of rows and columns of the grid. The outputs of each layer
        have the mean 0 and the Euclidean norm 1.

    Raises:
        ConfigError: If the tower has no patch vectors.

    Source:
        The sum over blocks follows the authors' code of Recover and Match, CVPR 2025,
        arXiv:2503.15337. The layers were selected by measurements; see ``MultipleInstancePatches``.
    """
    tower = vit_tower(visual)
    if tower is not None:
        return average_in_cells(multi_layer_vit_features(tower, tower.embed(pixels)))
    features = self_aware_patch_features(visual, pixels)
    layers = trunk_features(visual, pixels).layers or {}
    return average_in_cells(replace(features, multi_layer=layers[-1][:, :, None]))


def multi_layer_vit_features(tower: VitTower, tokens: Tensor) -> Features:
    """Return the features of :func:`multi_layer_patch_features` at each patch of a ViT.

    The outputs of the layers are not normalized.

    Args:
        tower: ViT.
        tokens: Input tokens of the first block, ``(n, t, w)``.
    """
    count = min(ATTENTION_LAYERS, len(tower.blocks))
    *inputs, outputs = vit_block_inputs(tower, tokens, count=count)
    attended = torch.stack(
        [
            self_aware_output_of_block(tower, block, block_input)
            for block, block_input in zip(tower.blocks[-count:], inputs, strict=True)
        ],
        dim=2,
    )[:, tower.n_prefix :]
    if tower.pools_patches:
        patches = project_self_aware_patches(tower, inputs[-1])
    else:
        patches = tower.project(attended.sum(dim=2))
    last_tokens = torch.stack([*inputs[1:], outputs][-TOKEN_LAYERS:], dim=2)[:, tower.n_prefix :]
    return replace(
        joint_space_patch_features(tower.pool(outputs), patches, tower.grid),
        multi_layer=torch.cat([attended, last_tokens], dim=2),
    )


def average_in_cells(features: Features) -> Features:
    """Average patches in the cells of a grid of at most 8 by 8 cells, and normalize the means.

    First, patch vectors and attention outputs are averaged with their neighbours in windows of one
    fifth of the image.

    Args:
        features: Features with ``patches``, ``multi_layer`` and ``grid``.
    """
    assert features.patches is not None
    assert features.multi_layer is not None
    assert features.grid is not None
    patches = _mean_of_each_cell(features.patches[:, :, None], features.grid, smooth=True)
    outputs = features.multi_layer
    n_attended = max(outputs.shape[2] - TOKEN_LAYERS, 0)
    attended, tokens = outputs[:, :, :n_attended], outputs[:, :, n_attended:]
    means = [_mean_of_each_cell(tokens, features.grid, smooth=False)]
    if n_attended:
        means = [_mean_of_each_cell(attended, features.grid, smooth=True), *means]
    width = outputs.shape[-1]
    normalized = F.layer_norm(torch.cat(means, dim=2), (width,)) / math.sqrt(width)
    return replace(
        features,
        patches=F.normalize(patches[:, :, 0], dim=-1),
        multi_layer=normalized,
        grid=_cell_grid(features.grid),
    )


def multi_layer_shape(features: Features) -> tuple[int, int]:
    """Return the numbers of layers and of values per layer in ``multi_layer``."""
    assert features.multi_layer is not None
    n_layers, width = features.multi_layer.shape[2:]
    return n_layers, width


def _mean_of_each_cell(values: Tensor, grid: tuple[int, int], *, smooth: bool) -> Tensor:
    """Return the mean of the patches in each cell, ``(n, cells, l, w)``.

    If the number of rows or columns is not a multiple of the number of cells, neighbouring cells
    share patches.

    Args:
        values: Values of the patches in l layers, ``(n, p, l, w)``.
        grid: Numbers of rows and columns of the patch grid.
        smooth: Whether each patch is first averaged with its neighbours.
    """
    maps = values.flatten(2).transpose(1, 2).unflatten(2, grid)
    if smooth:
        down, across = (2 * round((WINDOW * side - 1) / 2) + 1 for side in grid)
        padding = (down // 2, across // 2)
        maps = F.avg_pool2d(maps, (down, across), 1, padding, count_include_pad=False)
    cells = F.adaptive_avg_pool2d(maps, _cell_grid(grid)).flatten(2).transpose(1, 2)
    means: Tensor = cells.unflatten(2, values.shape[2:])
    return means


def _cell_grid(grid: tuple[int, int]) -> tuple[int, int]:
    return min(grid[0], MAX_GRID_SIDE), min(grid[1], MAX_GRID_SIDE)
