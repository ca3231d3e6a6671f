"""Input of a ladder, a side network on the last blocks of a frozen ViT."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders.towers.last_blocks import (
    check_block_count,
    check_first_block,
    plain_vit_blocks,
)
from surelabel.encoders.towers.patch_features import self_aware_attention
from surelabel.records import Features


def ladder_features(visual: Any, pixels: Tensor, *, first_block: int, depth: int) -> Features:
    """Return the input of the last blocks and the sum of self-aware attention in lower blocks.

        self_aware_sum = sum of a_l for l = first_block .. L - depth - 1

    with a_l the self-aware attention on the input of block l of L (0-based), as in
    ``self_aware_patch_features``. The tower runs once.

    Args:
        visual: Image tower of an open_clip model.
        pixels: Preprocessed images, ``(n, 3, h, w)``.
        first_block: Index of the first block in the sum, 0-based.
        depth: Number of last blocks that are run again later.

    Returns:
        Unit vectors ``pooled`` ``(n, d)``; ``layers[-depth - 1]``, the input tokens of the last
        ``depth`` blocks, class token first, ``(n, 1 + p, w)``; ``self_aware_sum`` of the patch
        tokens, ``(n, p, w)``, zero if the sum is empty; the grid.

    Raises:
        ConfigError: If the tower is not a ViT of plain blocks, or does not have these blocks.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.2; the sum, and its start at the
        first block, by the authors' code.
    """
    blocks = plain_vit_blocks(visual)
    check_block_count(blocks, depth)
    check_first_block(blocks, first_block)
    tokens = entering = visual._embeds(pixels)
    self_aware_sum = tokens.new_zeros(tokens[:, 1:].shape)
    for index, block in enumerate(blocks):
        if first_block <= index < len(blocks) - depth:
            self_aware_sum += self_aware_attention(block, tokens)[:, 1:]
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
