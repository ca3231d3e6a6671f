"""What a side network on the last blocks of a frozen ViT starts from."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from surelabel.backbones.dense import self_attended
from surelabel.backbones.upper import check_depth, check_first, open_blocks
from surelabel.records import Features


def ladder(visual: Any, pixels: Tensor, *, first: int, depth: int) -> Features:
    """Run the tower once, and keep what enters its last blocks and what self-awareness adds below.

        beside = sum of a_l for l = first .. L - depth - 1

    with a_l the self-aware attention of what enters block l of L (0-based), as of ``self_aware``.

    Args:
        visual: The image tower of an open_clip model.
        pixels: Prepared pictures, ``(n, 3, h, w)``.
        first: The block from which self-aware attention is added up, 0-based.
        depth: How many of the last blocks are left to be run again.

    Returns:
        Unit vectors ``pooled`` ``(n, d)``; ``layers[-depth - 1]``, the tokens that enter the last
        ``depth`` blocks, class token first, ``(n, 1 + p, w)``; ``beside``, patches only,
        ``(n, p, w)``, zero where no block is below; the grid.

    Raises:
        ConfigError: the tower is no ViT of plain blocks, or has no such blocks.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.2; the sum, and its start at the
        first block, by the authors' code.
    """
    blocks = open_blocks(visual)
    check_depth(blocks, depth)
    check_first(blocks, first)
    tokens = entering = visual._embeds(pixels)
    beside = tokens.new_zeros(tokens[:, 1:].shape)
    for number, block in enumerate(blocks):
        if first <= number < len(blocks) - depth:
            beside += self_attended(block, tokens)[:, 1:]
        entering = tokens if number == len(blocks) - depth else entering
        tokens = block(tokens)
    pooled = visual._pool(tokens)[0] @ visual.proj
    down, across = visual.grid_size
    return Features(
        F.normalize(pooled, dim=-1),
        grid=(down, across),
        layers={-depth - 1: entering},
        beside=beside,
    )
