"""Compute patch features of an image tower in the joint space of images and texts."""

from typing import Any

import torch
import torch.nn.functional as F
from open_clip.model import TimmModel, VisionTransformer
from open_clip.modified_resnet import ModifiedResNet
from torch import Tensor

from surelabel.encoders.towers.block_attention import (
    split_attention_heads,
)
from surelabel.encoders.towers.trunk import timm_trunk_tokens
from surelabel.encoders.towers.vit_towers import (
    OpenClipVit,
    VitTower,
    project_timm_tokens,
    vit_block_inputs,
    vit_tower,
)
from surelabel.errors import ConfigError
from surelabel.records import Features


def plain_patch_features(visual: Any, pixels: Tensor) -> Features:
    """Return the pooled vectors and the plain patch vectors of an image tower.

    Plain patch vectors are the last outputs of the tower at each patch, projected to the joint
    space. In a ViT, the final norm and the projection are applied to each patch token of the last
    layer. If a ViT pools with learned queries, as in CoCa, the value and output projections of the
    pooling are first applied to each token. In a CLIP ResNet, the value and output projections of
    attention pooling are applied to each position of the feature map. In a timm tower, pooling and
    projection are applied to each position separately.

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
        tower = OpenClipVit(visual)
        return plain_vit_patch_features(tower, tower.embed(pixels))
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
    the output projection. Rotary position embeddings, which apply to queries and keys, are not
    used.

    - A ViT that pools the class token: the final norm and the projection are applied to a, without
      the residual x.
    - A ViT that pools its patches, by their mean or with learned queries as in SigLIP, PE-Core and
      CoCa: the block continues with its residual and MLP from x + a. Each output is pooled
      separately.
    - A CLIP ResNet: x is the input of attention pooling, LN is omitted, and a is the patch vector.
    - Another tower: plain patch vectors; see :func:`plain_patch_features`.

    Args:
        visual: Image tower of an open_clip model.
        pixels: Preprocessed images, ``(n, 3, h, w)``.

    Returns:
        Features with the unit vectors ``pooled`` ``(n, d)`` of the unmodified tower, and the unit
        vectors ``patches`` ``(n, p, d)`` of ``p`` patches of each image. ``grid`` contains the
        numbers of rows and columns of the patch grid.

    Raises:
        ConfigError: If the tower has no patch vectors.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.2: self-aware attention. Li et
        al., CLIP Surgery, arXiv:2304.05653: value-to-value attention without MLP.

    Differs:
        Recover and Match and CLIP Surgery sum the attention output over several layers. Here, only
        the last layer is used. The residual x of Recover and Match is omitted with class tokens,
        because with the residual the highest-scoring patch of a label is outside the object in
        images of Scenes. With pooled patches, the residual is used: the mAP of the highest-scoring
        patch, in percent, is 43.9 instead of 28.7 with attention pooling, and 43.5 instead of 41.5
        with mean pooling (docs/models.md).

        Two refinements were compared on validation images of Scenes, 300 with `tiny-vit` and 200
        with `tiny-rn`, and are not part of the package. Key-to-key attention with a Gaussian prior
        on neighbouring patches (after NACLIP, arXiv:2404.08181, sigma of 2 patches) has the mAP
        43.3 instead of 35.4 for the highest-scoring patch of `tiny-vit`, but 54.6 instead of 61.5
        for `tiny-rn`. The mAP of `dense_regions` is 75.5 instead of 75.3, and 59.3 instead of 64.6.
        The mAP of `region_statistics` with `tiny-vit`, fitted on 400 images, is 56.1 instead of
        59.0. In `tiny-vit`, replacing 5 % outlying tokens before the last block (after SC-CLIP,
        arXiv:2411.15869) changes the mAP of the highest-scoring patch from 36.7 to 36.5 and the
        pointing accuracy from 60.4 to 59.0. Adding the similarity of a middle layer to the
        attention changes the two values to 34.6 and 60.4.
    """
    if isinstance(visual, ModifiedResNet):
        pooled, tokens, grid = resnet_tokens_for_patch_features(visual, pixels)
        pool = visual.attnpool
        values = split_attention_heads(pool.v_proj(tokens), pool.num_heads)
        attended = pool.c_proj(value_to_value_patch_features(values))
        return joint_space_patch_features(pooled, attended[:, 1:], grid)
    tower = vit_tower(visual)
    if tower is None:
        return plain_patch_features(visual, pixels)
    return self_aware_vit_patch_features(tower, tower.embed(pixels))


def plain_vit_patch_features(tower: VitTower, tokens: Tensor) -> Features:
    """Return the pooled vectors and the plain patch vectors of a ViT.

    Args:
        tower: ViT.
        tokens: Input tokens of the first block, ``(n, t, w)``.
    """
    outputs = vit_block_inputs(tower, tokens, count=0)[-1]
    patches = tower.project(outputs[:, tower.n_prefix :])
    return joint_space_patch_features(tower.pool(outputs), patches, tower.grid)


def self_aware_vit_patch_features(tower: VitTower, tokens: Tensor) -> Features:
    """Return the pooled vectors and the self-aware patch vectors of a ViT.

    Args:
        tower: ViT.
        tokens: Input tokens of the first block, ``(n, t, w)``.
    """
    block_input, outputs = vit_block_inputs(tower, tokens, count=1)
    patches = project_self_aware_patches(tower, block_input)
    return joint_space_patch_features(tower.pool(outputs), patches, tower.grid)


def project_self_aware_patches(tower: VitTower, block_input: Tensor) -> Tensor:
    """Return self-aware patch vectors ``(n, p, d)``, without normalization.

    Args:
        tower: ViT.
        block_input: Input tokens of the last block, ``(n, t, w)``.
    """
    block = tower.blocks[-1]
    outputs = self_aware_output_of_block(tower, block, block_input)
    if tower.pools_patches:
        outputs = tower.output_after_attention(block, block_input, outputs)
    return tower.project(outputs[:, tower.n_prefix :])


def self_aware_output_of_block(tower: VitTower, block: Any, tokens: Tensor) -> Tensor:
    """Return the output ``(n, t, w)`` of value-to-value attention in a ViT block.

    Args:
        tower: ViT.
        block: Block of the ViT.
        tokens: Input tokens of the block, ``(n, t, w)``.
    """
    values = tower.attention_values(block, tokens)
    mixed = F.scaled_dot_product_attention(values, values, values)
    return tower.attention_output(block, tokens, mixed)


def has_self_aware_patches(visual: Any) -> bool:
    """Return whether self-aware patch vectors of an image tower differ from plain patch vectors.

    Args:
        visual: Image tower of an open_clip model.
    """
    return isinstance(visual, ModifiedResNet) or vit_tower(visual) is not None


def value_to_value_patch_features(values: Tensor) -> Tensor:
    """Compute attention with the values as queries and keys, without the output projection.

    Args:
        values: Attention values of all heads, ``(n, heads, t, e)``.

    Returns:
        Attention-weighted means of the values, ``(n, t, heads · e)``.
    """
    attended = F.scaled_dot_product_attention(values, values, values)
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


def joint_space_patch_features(pooled: Tensor, patches: Tensor, grid: tuple[int, ...]) -> Features:
    """Return ``Features`` with the normalized pooled vectors and the normalized patch vectors."""
    rows, columns = grid
    return Features(
        pooled=F.normalize(pooled, dim=-1),
        patches=F.normalize(patches, dim=-1),
        grid=(rows, columns),
    )


def _timm_patch_features(visual: TimmModel, pixels: Tensor) -> Features:
    """Apply the pooling and the head of a timm tower to each position separately."""
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
    if outputs.ndim == 3:
        patches = project_timm_tokens(trunk, visual.head, tokens)
    else:
        positions = tokens.flatten(0, 1)[:, None, None]  # channels last
        if outputs.shape[1] == trunk.num_features:
            positions = positions.movedim(-1, 1)
        patches = visual.head(trunk.forward_head(positions)).unflatten(0, tokens.shape[:2])
    return joint_space_patch_features(pooled, patches, grid)
