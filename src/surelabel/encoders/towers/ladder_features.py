"""Compute the input features of a ladder, a side network on the last blocks of a frozen ViT."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders.towers.last_blocks import (
    check_last_block_count,
    check_vit_block_index,
    plain_vit_blocks,
)
from surelabel.encoders.towers.patch_features import self_aware_features_of_block
from surelabel.records import Features


def ladder_features(visual: Any, pixels: Tensor, *, first_block: int, depth: int) -> Features:
    """Return the input tokens of the last blocks, and a sum of self-aware attention outputs.

        self_aware_sum = sum of a_l for l = first_block .. L - depth - 1

    where a_l is the output of self-aware attention in block l (0-based), and L is the number of
    blocks. ``self_aware_patch_features`` defines self-aware attention. The tower runs once.

    Args:
        visual: Image tower of an open_clip model.
        pixels: Preprocessed images, ``(n, 3, h, w)``.
        first_block: Index of the first block in the sum of self-aware attention, 0-based.
        depth: Number of last blocks that the ladder runs again. These blocks are not in the sum.

    Returns:
        Features with the unit vectors ``pooled`` ``(n, d)``, the numbers of rows and columns of
        the patch grid, and two sets of tokens. ``layers[-depth - 1]`` ``(n, 1 + p, w)`` contains
        the input tokens of the last ``depth`` blocks, class token first. ``self_aware_sum``
        ``(n, p, w)`` contains the sum for the ``p`` patch tokens. If the sum has no terms, all
        values of ``self_aware_sum`` are zero.

    Raises:
        ConfigError: If the tower is not a ViT with standard attention blocks, or if ``depth`` or
            ``first_block`` is out of range.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.2. The sum over blocks follows
        the authors' code.
    """
    blocks = plain_vit_blocks(visual)
    check_last_block_count(blocks, depth)
    check_vit_block_index(blocks, first_block)
    tokens = entering = visual._embeds(pixels)
    self_aware_sum = tokens.new_zeros(tokens[:, 1:].shape)
    for index, block in enumerate(blocks):
        if first_block <= index < len(blocks) - depth:
            self_aware_sum += self_aware_features_of_block(block, tokens)[:, 1:]
        entering = tokens if index == len(blocks) - depth else entering
        tokens = block(tokens)
    pooled = visual._pool(tokens)[0] @ visual.proj
    rows, columns = visual.grid_size
    return Features(
        F.normalize(pooled, dim=-1),
        grid=(rows, columns),
        layers={-depth - 1: entering},
        self_aware_sum=self_aware_sum,
    )
