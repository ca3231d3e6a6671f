"""Compute the input features of a ladder, a side network on the last blocks of a frozen ViT."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders.towers.last_blocks import (
    check_last_block_count,
    check_vit_block_index,
    ladder_vit_tower,
    tokens_with_class_token,
)
from surelabel.encoders.towers.patch_features import self_aware_output_of_block
from surelabel.records import Features


def ladder_features(visual: Any, pixels: Tensor, *, first_block: int, depth: int) -> Features:
    """Return the input tokens of the last blocks, and a sum of self-aware attention outputs.

        self_aware_sum = sum of a_l for l = first_block .. L - depth - 1

    where a_l is the output of self-aware attention in block l (0-based), and L is the number of
    blocks. ``self_aware_patch_features`` defines self-aware attention. If the tower pools its
    patches, ``self_aware_sum`` contains the input tokens of the last blocks instead, which are the
    residual of these blocks. Each block of the tower is computed once.

    Args:
        visual: Image tower of an open_clip model.
        pixels: Preprocessed images, ``(n, 3, h, w)``.
        first_block: Index of the first block in the sum of self-aware attention, 0-based.
        depth: Number of last blocks that the ladder computes again. These blocks are not in the
            sum.

    Returns:
        Features with the unit vectors ``pooled`` ``(n, d)``, the numbers of rows and columns of
        the patch grid, and two sets of tokens. ``layers[-depth - 1]`` ``(n, 1 + p, w)`` contains
        the input tokens of the last ``depth`` blocks, class token first. If the tower has no class
        token, the values of the first token are zero. ``self_aware_sum`` ``(n, p, w)`` contains the
        sum for the ``p`` patch tokens. If the sum has no terms, all values of ``self_aware_sum``
        are zero.

    Raises:
        ConfigError: If the tower is not a ViT with known attention layers, or if ``depth`` or
            ``first_block`` is out of range.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.2. The sum over blocks follows
        the authors' code.

    Differs:
        The residual of the last blocks is part of the region vectors only if the tower pools its
        patches; see ``self_aware_patch_features``.
    """
    tower = ladder_vit_tower(visual)
    check_last_block_count(tower.blocks, depth)
    check_vit_block_index(tower.blocks, first_block)
    tokens = entering = tower.embed(pixels)
    self_aware_sum = tokens.new_zeros(tokens[:, tower.n_prefix :].shape)
    n_lower = len(tower.blocks) - depth
    for index, block in enumerate(tower.blocks):
        if first_block <= index < n_lower and not tower.pools_patches:
            attended = self_aware_output_of_block(tower, block, tokens)
            self_aware_sum += attended[:, tower.n_prefix :]
        entering = tokens if index == n_lower else entering
        tokens = tower.run_block(block, tokens)
    return Features(
        F.normalize(tower.pool(tokens), dim=-1),
        grid=tower.grid,
        layers={-depth - 1: tokens_with_class_token(tower, entering)},
        self_aware_sum=entering[:, tower.n_prefix :] if tower.pools_patches else self_aware_sum,
    )
