"""Patch vectors in the joint space: what the encoder sees where."""

from typing import Any

import torch
import torch.nn.functional as F
from open_clip.model import TimmModel, VisionTransformer
from open_clip.modified_resnet import ModifiedResNet
from torch import Tensor, nn

from surelabel.backbones.trunk import timm_tokens
from surelabel.errors import ConfigError
from surelabel.records import Features


def plain(visual: Any, pixels: Tensor) -> Features:
    """Pooled and patch vectors of a tower as it is.

    ViT: tokens of the last layer through the closing norm and projection.
    CLIP ResNet: every place through the value and output projections of attention pooling, so
    that the pooled vector is, head by head, a weighted mean of what is returned here.
    timm: every place alone through the pooling and projection that the whole picture takes.

    Args:
        visual: The image tower of an open_clip model.
        pixels: Prepared pictures, ``(n, 3, h, w)``.

    Returns:
        Unit vectors ``pooled`` ``(n, d)`` and ``patches`` ``(n, p, d)``, and the grid.

    Raises:
        ConfigError: the tower pools so that single patches have no place in the joint space.

    Source:
        Values as dense features: Zhou et al., Extract Free Dense Labels from CLIP, ECCV 2022,
        arXiv:2112.01071.

    Differs:
        The position table stays added before the value projection, as in pooling itself.
    """
    if isinstance(visual, VisionTransformer):
        check_poolable(visual)
        seen = visual.forward_intermediates(
            pixels, indices=1, normalize_intermediates=True, output_fmt="NLC"
        )
        patches = seen["image_intermediates"][-1] @ visual.proj
        return joint_features(seen["image_features"], patches, visual.grid_size)
    if isinstance(visual, ModifiedResNet):
        pooled, places, grid = last_places(visual, pixels)
        values = visual.attnpool.v_proj(places)[:, 1:]
        return joint_features(pooled, visual.attnpool.c_proj(values), grid)
    if isinstance(visual, TimmModel):
        return _place_by_place(visual, pixels)
    raise ConfigError(
        f"Patch vectors come from ViT, CLIP ResNet and timm towers. Got {type(visual).__name__}; "
        "use a method that needs the pooled vector only."
    )


def self_aware(visual: Any, pixels: Tensor) -> Features:
    """The same, where the last attention compares values with values.

        a = W_o [ softmax(v v' / sqrt(head width)) v ] + b_o        v = W_v LN(x) + b_v

    ViT: a alone goes through the closing norm and projection; x enters the last block. CLIP
    ResNet: a of attention pooling.

    Args:
        visual: The image tower of an open_clip model.
        pixels: Prepared pictures, ``(n, 3, h, w)``.

    Returns:
        Unit vectors ``pooled`` ``(n, d)``, unchanged, and ``patches`` ``(n, p, d)``, and the grid.

    Raises:
        ConfigError: the tower is no ViT of plain blocks and no CLIP ResNet.

    Source:
        Recover and Match (CVPR 2025), section 4.2, self-aware attention; Li et al., CLIP Surgery,
        arXiv:2304.05653 (value to value, no MLP).

    Differs:
        The last layer only, where both papers sum such attention over several, and without the
        residual x of Recover and Match: with it, labels of Scenes are strongest beside their
        object (docs/models.md).
    """
    if isinstance(visual, ModifiedResNet):
        pooled, places, grid = last_places(visual, pixels)
        pool = visual.attnpool
        attended = pool.c_proj(value_to_value(pool.v_proj(places), pool.num_heads))
        return joint_features(pooled, attended[:, 1:], grid)
    block = plain_blocks(visual)[-1]
    seen = visual.forward_intermediates(
        pixels, indices=2, output_fmt="NLC", output_extra_tokens=True
    )
    before = torch.cat(
        [seen["image_intermediates_prefix"][0], seen["image_intermediates"][0]], dim=1
    )
    attended = self_attended(block, before)
    patches = visual.ln_post(attended)[:, 1:] @ visual.proj
    return joint_features(seen["image_features"], patches, visual.grid_size)


def plain_blocks(visual: Any) -> Any:
    """The blocks of a ViT whose last attention can be changed.

    Raises:
        ConfigError: the tower is no ViT of two or more plain blocks, or pools by learnt queries.
    """
    blocks = visual.transformer.resblocks if isinstance(visual, VisionTransformer) else []
    if len(blocks) < 2 or not all(isinstance(b.attn, nn.MultiheadAttention) for b in blocks):
        raise ConfigError(
            "Self-aware patches need a ViT of two or more plain blocks or a CLIP ResNet. "
            f"Got {type(visual).__name__}; use plain patches."
        )
    check_poolable(visual)
    return blocks


def self_attended(block: Any, tokens: Tensor) -> Tensor:
    """What the attention of a block adds where it compares values with values, ``(n, 1 + p, w)``.

    ``tokens`` is what enters the block.
    """
    weight = block.attn.in_proj_weight.chunk(3)[2]
    bias = block.attn.in_proj_bias.chunk(3)[2]
    values = F.linear(block.ln_1(tokens), weight, bias)
    attended: Tensor = block.ls_1(block.attn.out_proj(value_to_value(values, block.attn.num_heads)))
    return attended


def value_to_value(values: Tensor, heads: int) -> Tensor:
    """Attention with values as queries and keys, ``(n, p, w)``, before the output projection."""
    split = values.unflatten(-1, (heads, -1)).transpose(1, 2)
    attended = F.scaled_dot_product_attention(split, split, split)
    return attended.transpose(1, 2).flatten(2)


def last_places(visual: ModifiedResNet, pixels: Tensor) -> tuple[Tensor, Tensor, tuple[int, int]]:
    """Pooled vectors, what attention pooling sees (the mean, then every place), and the grid."""
    seen = visual.forward_intermediates(pixels, indices=1)
    last: Tensor = seen["image_intermediates"][-1]
    places = last.flatten(2).transpose(1, 2)
    places = torch.cat([places.mean(dim=1, keepdim=True), places], dim=1)
    down, across = last.shape[2:]
    return seen["image_features"], places + visual.attnpool.positional_embedding, (down, across)


def check_poolable(visual: VisionTransformer) -> None:
    """Refuse a ViT whose pooling has no place for single patches.

    Raises:
        ConfigError: it pools by learnt queries.
    """
    if visual.attn_pool is not None:
        raise ConfigError(
            "Patch vectors need a ViT that pools its class token or the mean of its patches; "
            "this one (CoCa) pools by learnt queries. Use a method that needs the pooled vector "
            "only."
        )


def joint_features(pooled: Tensor, patches: Tensor, grid: tuple[int, ...]) -> Features:
    """Both as unit vectors, on their grid."""
    down, across = grid
    return Features(
        pooled=F.normalize(pooled, dim=-1),
        patches=F.normalize(patches, dim=-1),
        grid=(down, across),
    )


def _place_by_place(visual: TimmModel, pixels: Tensor) -> Features:
    """Each place alone through the pooling and head of a timm trunk.

    Tokens are repeated as often as the trunk has class tokens, so that class-token, mean and
    attention pooling all find the one patch they are given.
    """
    trunk: Any = visual.trunk
    seen = trunk.forward_features(pixels)
    pooled = visual.head(trunk.forward_head(seen))
    found = timm_tokens(trunk, seen)
    if "pool" in dict(visual.head.named_children()) or found is None:
        raise ConfigError(
            f"The timm trunk {type(trunk).__name__} gives no patch vectors in the joint space. "
            "Use a method that needs the pooled vector only, or a ViT or CLIP ResNet."
        )
    tokens, grid = found
    alone = tokens.flatten(0, 1)
    if seen.ndim == 4:
        alone = alone[:, :, None, None]
    else:
        alone = alone[:, None].expand(-1, trunk.num_prefix_tokens + 1, -1)
    patches = visual.head(trunk.forward_head(alone))
    return joint_features(pooled, patches.unflatten(0, (len(pixels), -1)), grid)
