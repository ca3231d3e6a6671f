"""Attention weights between the patches of an image tower."""

from typing import Any

import torch
import torch.nn.functional as F
from open_clip.modified_resnet import ModifiedResNet
from torch import Tensor

from surelabel.encoders.towers.patch_features import (
    joint_space_features,
    resnet_pooling_tokens,
    self_attention_blocks,
    self_aware_attention,
    value_to_value_attention,
)
from surelabel.records import Features

LATE_SHARE = 3  # the attention of the last third of the blocks is averaged


def patch_attention_features(visual: Any, pixels: Tensor) -> Features:
    """Return self-aware patches and the attention weights between them.

    The weights are those of value-to-value attention, averaged over the heads. ViT: they are also
    averaged over the last third of the blocks. CLIP ResNet: they are those of attention pooling.
    The class token or mean is left out, and each row is normalized to sum 1.

    Args:
        visual: Image tower of an open_clip model.
        pixels: Preprocessed images, ``(n, 3, h, w)``.

    Returns:
        ``pooled``, ``patches`` and ``grid`` of :func:`self_aware_patch_features`, and
        ``attention`` ``(n, p, p)``, whose rows have sum 1.

    Raises:
        ConfigError: If the tower is neither a ViT of plain blocks nor a CLIP ResNet.

    Source:
        Lin et al., TagCLIP, AAAI 2024, arXiv:2312.12828: the attention of late layers shows which
        patches belong to the same object.

    Differs:
        TagCLIP averages query-to-key attention over layers 9 to 11 of 12, and sets weights to
        zero that are high in less than a third of the layers. Here the attention is
        value-to-value and includes the last layer. Measured on 200 validation images of Scenes
        with `tiny-vit`: share of visible objects whose strongest patch is in their box, 25 % with
        query-to-key attention without zeroing, 61 % here, 60 % without refinement; mAP of patches
        alone 41.6, 38.5 and 38.4. Zeroing changed mAP by 0.2. A ResNet has no such layers.
    """
    if isinstance(visual, ModifiedResNet):
        pool = visual.attnpool
        pooled, tokens, grid = resnet_pooling_tokens(visual, pixels)
        values = pool.v_proj(tokens)
        patches = pool.c_proj(value_to_value_attention(values, pool.num_heads))[:, 1:]
        weights = _mean_attention_weights(values, pool.num_heads)
    else:
        pooled, patches, grid, weights = _vit_patches_and_weights(visual, pixels)
    features = joint_space_features(pooled, patches, grid)
    return Features(
        features.pooled,
        features.patches,
        features.grid,
        attention=normalize_attention_rows(weights[:, 1:, 1:]),
    )


def normalize_attention_rows(weights: Tensor) -> Tensor:
    """Return attention weights ``(n, p, p)`` with rows of sum 1."""
    return weights / weights.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)


def _vit_patches_and_weights(
    visual: Any, pixels: Tensor
) -> tuple[Tensor, Tensor, tuple[int, int], Tensor]:
    blocks = self_attention_blocks(visual)
    late_blocks = blocks[-max(len(blocks) // LATE_SHARE, 1) :]
    outputs = visual.forward_intermediates(
        pixels, indices=len(late_blocks) + 1, output_fmt="NLC", output_extra_tokens=True
    )
    block_outputs = zip(
        outputs["image_intermediates_prefix"], outputs["image_intermediates"], strict=True
    )
    block_inputs = [torch.cat(tokens, dim=1) for tokens in block_outputs][:-1]
    weights = [_block_weights(*pair) for pair in zip(late_blocks, block_inputs, strict=True)]
    attended = visual.ln_post(self_aware_attention(late_blocks[-1], block_inputs[-1]))[:, 1:]
    return (
        outputs["image_features"],
        attended @ visual.proj,
        visual.grid_size,
        torch.stack(weights).mean(dim=0),
    )


def _block_weights(block: Any, tokens: Tensor) -> Tensor:
    """Return value-to-value weights of a block for its input, ``(n, 1 + p, 1 + p)``."""
    weight, bias = block.attn.in_proj_weight.chunk(3)[2], block.attn.in_proj_bias.chunk(3)[2]
    values = F.linear(block.ln_1(tokens), weight, bias)
    return _mean_attention_weights(values, block.attn.num_heads)


def _mean_attention_weights(values: Tensor, heads: int) -> Tensor:
    """Return value-to-value weights, averaged over the heads, ``(n, p, p)``.

    The heads are processed one after another, which needs less memory.
    """
    total = values.new_zeros(*values.shape[:2], values.shape[1])
    for head_values in values.chunk(heads, dim=-1):
        scores = head_values @ head_values.transpose(-1, -2) / head_values.shape[-1] ** 0.5
        total += scores.softmax(dim=-1)
    return total / heads
