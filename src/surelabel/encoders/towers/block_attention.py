"""Compute values and outputs of the attention layers in ViT blocks of open_clip and timm.

The heads are separate in the values, ``(n, heads, t, e)``, for ``t`` tokens and ``e`` values of
each head.
"""

from typing import Any

import torch.nn.functional as F
from open_clip.transformer import ResidualAttentionBlock
from timm.layers.attention import Attention, AttentionRope
from timm.models.eva import EvaAttention, EvaBlock, EvaBlockPostNorm
from timm.models.vision_transformer import Block
from timm.models.vision_transformer_relpos import RelPosAttention, RelPosBlock, ResPostRelPosBlock
from torch import Tensor, nn

NORM_AFTER_ATTENTION = (EvaBlockPostNorm, ResPostRelPosBlock)
TIMM_BLOCKS = (Block, EvaBlock, RelPosBlock, *NORM_AFTER_ATTENTION)
TIMM_ATTENTION = (Attention, AttentionRope, EvaAttention, RelPosAttention)


def block_has_value_attention(block: Any) -> bool:
    """Return whether the values and outputs of the attention in a block can be computed.

    Args:
        block: Block of a ViT of open_clip or timm.
    """
    if isinstance(block, ResidualAttentionBlock):
        return isinstance(block.attn, nn.MultiheadAttention)
    return type(block) in TIMM_BLOCKS and type(block.attn) in TIMM_ATTENTION


def block_attention_values(block: Any, tokens: Tensor) -> Tensor:
    """Return the attention values of all heads, ``(n, heads, t, e)``.

    With grouped-query attention, the number of heads is the number of value heads.

    Args:
        block: Block that :func:`block_has_value_attention` accepts.
        tokens: Input tokens of the block, ``(n, t, w)``.
    """
    inputs, attention = _attention_input(block, tokens), block.attn
    if isinstance(block, ResidualAttentionBlock):
        weight, bias = attention.in_proj_weight.chunk(3)[2], attention.in_proj_bias.chunk(3)[2]
        return split_attention_heads(F.linear(inputs, weight, bias), attention.num_heads)
    if attention.qkv is None:
        values = attention.v_proj(inputs)
    else:
        is_eva = isinstance(attention, EvaAttention)
        bias = attention.v_bias if is_eva else attention.qkv.bias
        if bias is not None and not is_eva:
            bias = bias.chunk(3)[2]
        values = F.linear(inputs, attention.qkv.weight.chunk(3)[2], bias)
    return split_attention_heads(values, values.shape[-1] // attention.head_dim)


def block_attention_output(block: Any, tokens: Tensor, mixed: Tensor) -> Tensor:
    """Return the output ``(n, t, w)`` of an attention layer, before it is added to the residual.

    The output includes the norm and the gate of the heads, the output projection, and the layer
    scale or the norm of the block, if the block has these layers.

    Args:
        block: Block that :func:`block_has_value_attention` accepts.
        tokens: Input tokens of the block, ``(n, t, w)``.
        mixed: Attention-weighted means of the values, ``(n, heads, t, e)``.
    """
    attention: Any = block.attn
    if isinstance(block, ResidualAttentionBlock):
        output: Tensor = block.ls_1(attention.out_proj(mixed.transpose(1, 2).flatten(2)))
        return output
    if isinstance(attention, AttentionRope):
        mixed = mixed.repeat_interleave(attention.num_kv_groups, dim=1)
    merged = mixed.transpose(1, 2).flatten(2)
    if not isinstance(attention, RelPosAttention):
        merged = attention.norm(merged)
        if attention.gate is not None:
            merged = merged * attention.gate(_attention_input(block, tokens)).sigmoid()
    projected: Tensor = attention.proj(merged)
    if isinstance(block, NORM_AFTER_ATTENTION):
        projected = block.norm1(projected)
    elif isinstance(block, EvaBlock):
        projected = projected if block.gamma_1 is None else block.gamma_1 * projected
    else:
        projected = block.ls1(projected)
    return projected


def block_output_after_attention(block: Any, tokens: Tensor, attended: Tensor) -> Tensor:
    """Return the output tokens ``(n, t, w)`` of a block whose attention returned ``attended``.

    Args:
        block: Block that :func:`block_has_value_attention` accepts.
        tokens: Input tokens of the block, ``(n, t, w)``.
        attended: Output of :func:`block_attention_output`, ``(n, t, w)``.
    """
    tokens = tokens + attended
    added: Tensor
    if isinstance(block, ResidualAttentionBlock):
        added = block.ls_2(block.mlp(block.ln_2(tokens)))
    elif isinstance(block, NORM_AFTER_ATTENTION):
        added = block.norm2(block.mlp(tokens))
    elif isinstance(block, EvaBlock):
        added = block.mlp(block.norm2(tokens))
        added = added if block.gamma_2 is None else block.gamma_2 * added
    else:
        added = block.ls2(block.mlp(block.norm2(tokens)))
    return tokens + added


def split_attention_heads(merged: Tensor, heads: int) -> Tensor:
    """Split values of all heads, ``(n, t, heads · e)``, into heads, ``(n, heads, t, e)``."""
    split: Tensor = merged.unflatten(-1, (heads, -1)).transpose(1, 2)
    return split


def _attention_input(block: Any, tokens: Tensor) -> Tensor:
    """Return the input ``(n, t, w)`` of the attention, which is normalized in most blocks."""
    if isinstance(block, NORM_AFTER_ATTENTION):
        return tokens
    norm = block.ln_1 if isinstance(block, ResidualAttentionBlock) else block.norm1
    normalized: Tensor = norm(tokens)
    return normalized
