"""Compute patch features of an image tower in the joint space of images and texts."""

from typing import Any

import torch
import torch.nn.functional as F
from open_clip.model import TimmModel, VisionTransformer
from open_clip.modified_resnet import ModifiedResNet
from torch import Tensor, nn

from surelabel.encoders.towers.trunk import timm_trunk_tokens
from surelabel.errors import ConfigError
from surelabel.records import Features


def plain_patch_features(visual: Any, pixels: Tensor) -> Features:
    """Return the pooled vectors and the plain patch vectors of an image tower.

    Plain patch vectors are the last outputs of the tower at each patch, projected to the joint
    space. In a ViT, the final norm and the projection are applied to each patch token of the last
    layer. In a CLIP ResNet, the value and output projections of attention pooling are applied to
    each position of the feature map. In a timm tower, pooling and projection are applied to each
    position separately.

    Args:
        visual: Image tower of an open_clip model.
        pixels: Preprocessed images, ``(n, 3, h, w)``.

    Returns:
        Features with the unit vectors ``pooled`` ``(n, d)``, and the unit vectors ``patches``
        ``(n, p, d)`` of ``p`` patches of each image. ``grid`` contains the numbers of rows and
        columns of the patch grid.

    Raises:
        ConfigError: If the pooling of the tower is not defined for a single patch, or the tower is
            not a ViT, CLIP ResNet or timm tower.

    Source:
        Zhou et al., Extract Free Dense Labels from CLIP, ECCV 2022, arXiv:2112.01071: the values of
        attention pooling are used as dense features.

    Differs:
        Position embeddings are added before the value projection, as in attention pooling.
    """
    if isinstance(visual, VisionTransformer):
        check_pooling_for_patch_features(visual)
        outputs = visual.forward_intermediates(
            pixels, indices=1, normalize_intermediates=True, output_fmt="NLC"
        )
        patches = outputs["image_intermediates"][-1] @ visual.proj
        return joint_space_patch_features(outputs["image_features"], patches, visual.grid_size)
    if isinstance(visual, ModifiedResNet):
        pooled, tokens, grid = resnet_tokens_for_patch_features(visual, pixels)
        values = visual.attnpool.v_proj(tokens)[:, 1:]
        return joint_space_patch_features(pooled, visual.attnpool.c_proj(values), grid)
    if isinstance(visual, TimmModel):
        return _timm_patch_features(visual, pixels)
    raise ConfigError(
        f"Patch vectors need a ViT, CLIP ResNet or timm tower; got {type(visual).__name__}. "
        "Use a method that needs only the pooled vector."
    )


def self_aware_patch_features(visual: Any, pixels: Tensor) -> Features:
    """Return patch vectors that are computed with value-to-value attention in the last layer.

        a = W_o [ softmax(v v' / sqrt(head width)) v ] + b_o        v = W_v LN(x) + b_v

    where x is the input of the last block, LN is the layer norm, and v are the attention values.
    W_v and b_v are the parameters of the value projection, and W_o and b_o are the parameters of
    the output projection. In a ViT, the final norm and the projection are applied to a, without the
    residual x. In a CLIP ResNet, x is the input of attention pooling, LN is omitted, and a is the
    patch vector.

    Args:
        visual: Image tower of an open_clip model.
        pixels: Preprocessed images, ``(n, 3, h, w)``.

    Returns:
        Features with the unit vectors ``pooled`` ``(n, d)`` of the unmodified tower, and the unit
        vectors ``patches`` ``(n, p, d)`` of ``p`` patches of each image. ``grid`` contains the
        numbers of rows and columns of the patch grid.

    Raises:
        ConfigError: If the tower is neither a ViT with standard attention blocks nor a CLIP ResNet.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.2: self-aware attention. Li et
        al., CLIP Surgery, arXiv:2304.05653: value-to-value attention without MLP.

    Differs:
        Recover and Match and CLIP Surgery sum the attention output over several layers. Here, only
        the last layer is used. The residual x of Recover and Match is omitted, because with the
        residual the highest-scoring patch of a label is outside the object in images of Scenes
        (docs/models.md).
    """
    if isinstance(visual, ModifiedResNet):
        pooled, tokens, grid = resnet_tokens_for_patch_features(visual, pixels)
        pool = visual.attnpool
        attended = pool.c_proj(value_to_value_patch_features(pool.v_proj(tokens), pool.num_heads))
        return joint_space_patch_features(pooled, attended[:, 1:], grid)
    block = blocks_for_patch_features(visual)[-1]
    outputs = visual.forward_intermediates(
        pixels, indices=2, output_fmt="NLC", output_extra_tokens=True
    )
    block_input = torch.cat(
        [outputs["image_intermediates_prefix"][0], outputs["image_intermediates"][0]], dim=1
    )
    attended = self_aware_features_of_block(block, block_input)
    patches = visual.ln_post(attended)[:, 1:] @ visual.proj
    return joint_space_patch_features(outputs["image_features"], patches, visual.grid_size)


def blocks_for_patch_features(visual: Any) -> Any:
    """Return the blocks of a ViT that supports self-aware attention.

    Raises:
        ConfigError: If the tower is not a ViT with two or more standard attention blocks, or pools
            with learned queries.
    """
    blocks = visual.transformer.resblocks if isinstance(visual, VisionTransformer) else []
    if len(blocks) < 2 or not all(isinstance(b.attn, nn.MultiheadAttention) for b in blocks):
        raise ConfigError(
            "Self-aware patches need a ViT with two or more standard attention blocks or a CLIP "
            f"ResNet; got {type(visual).__name__}. Use plain patches."
        )
    check_pooling_for_patch_features(visual)
    return blocks


def self_aware_features_of_block(block: Any, tokens: Tensor) -> Tensor:
    """Return the output ``(n, 1 + p, w)`` of value-to-value attention in a ViT block.

    Args:
        block: Block of a ViT with standard multi-head attention.
        tokens: Input tokens of the block, ``(n, 1 + p, w)``.
    """
    weight = block.attn.in_proj_weight.chunk(3)[2]
    bias = block.attn.in_proj_bias.chunk(3)[2]
    values = F.linear(block.ln_1(tokens), weight, bias)
    attended: Tensor = block.ls_1(
        block.attn.out_proj(value_to_value_patch_features(values, block.attn.num_heads))
    )
    return attended


def value_to_value_patch_features(values: Tensor, heads: int) -> Tensor:
    """Compute attention with the values as queries and keys, without the output projection.

    Args:
        values: Attention values of all heads, ``(n, p, w)``.
        heads: Number of attention heads.

    Returns:
        Attention-weighted means of the values, ``(n, p, w)``.
    """
    split = values.unflatten(-1, (heads, -1)).transpose(1, 2)
    attended = F.scaled_dot_product_attention(split, split, split)
    return attended.transpose(1, 2).flatten(2)


def resnet_tokens_for_patch_features(
    visual: ModifiedResNet, pixels: Tensor
) -> tuple[Tensor, Tensor, tuple[int, int]]:
    """Return pooled vectors, the input tokens of attention pooling, and the grid of a CLIP ResNet.

    The first input token is the mean over all positions of the last feature map. The other tokens
    are the positions of this feature map. Position embeddings are added to all tokens.
    """
    outputs = visual.forward_intermediates(pixels, indices=1)
    last: Tensor = outputs["image_intermediates"][-1]
    tokens = last.flatten(2).transpose(1, 2)
    tokens = torch.cat([tokens.mean(dim=1, keepdim=True), tokens], dim=1)
    rows, columns = last.shape[2:]
    return outputs["image_features"], tokens + visual.attnpool.positional_embedding, (rows, columns)


def check_pooling_for_patch_features(visual: VisionTransformer) -> None:
    """Check that the pooling of a ViT is defined for single patches.

    Raises:
        ConfigError: If the ViT pools with learned queries.
    """
    if visual.attn_pool is not None:
        raise ConfigError(
            "Patch vectors need a ViT that pools the class token or the mean of the patches; got "
            "a ViT that pools with learned queries, as in CoCa. Use a method that needs only the "
            "pooled vector."
        )


def joint_space_patch_features(pooled: Tensor, patches: Tensor, grid: tuple[int, ...]) -> Features:
    """Return ``Features`` with the normalized pooled vectors and the normalized patch vectors."""
    rows, columns = grid
    return Features(
        pooled=F.normalize(pooled, dim=-1),
        patches=F.normalize(patches, dim=-1),
        grid=(rows, columns),
    )


def _timm_patch_features(visual: TimmModel, pixels: Tensor) -> Features:
    """Apply the pooling and the head of a timm tower to each position separately.

    The input of the pooling is one token, copied to all prefix tokens and one patch. Therefore
    class-token, mean and attention pooling return the same vector.
    """
    trunk: Any = visual.trunk
    outputs = trunk.forward_features(pixels)
    pooled = visual.head(trunk.forward_head(outputs))
    token_grid = timm_trunk_tokens(trunk, outputs)
    if "pool" in dict(visual.head.named_children()) or token_grid is None:
        raise ConfigError(
            "Patch vectors in the joint space need a timm trunk that pools a grid of tokens; "
            f"{type(trunk).__name__} has no patch vectors. Use a method that needs only the "
            "pooled vector, or a ViT or CLIP ResNet."
        )
    tokens, grid = token_grid
    single = tokens.flatten(0, 1)
    if outputs.ndim == 4:
        single = single[:, :, None, None]
    else:
        single = single[:, None].expand(-1, trunk.num_prefix_tokens + 1, -1)
    patches = visual.head(trunk.forward_head(single))
    return joint_space_patch_features(pooled, patches.unflatten(0, (len(pixels), -1)), grid)
