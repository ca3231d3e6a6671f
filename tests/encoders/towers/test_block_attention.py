import pytest
import torch
from open_clip.transformer import CustomResidualAttentionBlock, ResidualAttentionBlock
from timm.models.eva import EvaBlock, EvaBlockPostNorm
from timm.models.vision_transformer import Block, ParallelScalingBlock
from timm.models.vision_transformer_relpos import RelPosBlock, ResPostRelPosBlock
from torch import nn

from surelabel.encoders.towers.block_attention import (
    block_attention_output,
    block_attention_values,
    block_has_value_attention,
    block_output_after_attention,
)

WIDTH, HEADS = 16, 4
BLOCKS = {
    "open_clip": lambda: ResidualAttentionBlock(WIDTH, HEADS, ls_init_value=0.5),
    "plain": lambda: Block(WIDTH, HEADS, qkv_bias=True, init_values=0.5),
    "norm of queries, keys and heads": lambda: Block(
        WIDTH, HEADS, qk_norm=True, scale_attn_norm=True
    ),
    "one projection": lambda: EvaBlock(WIDTH, HEADS, init_values=0.5),
    "three projections and norms": lambda: EvaBlock(
        WIDTH, HEADS, qkv_fused=False, swiglu_mlp=True, scale_mlp=True, scale_attn_inner=True
    ),
    "gate": lambda: EvaBlock(WIDTH, HEADS, gated_attn=True, qkv_bias=False),
    "grouped queries": lambda: EvaBlock(
        WIDTH, HEADS, attn_type="rope", qkv_fused=False, num_kv_heads=2, norm_layer=nn.LayerNorm
    ),
    "norm after attention": lambda: EvaBlockPostNorm(WIDTH, HEADS),
    "relative positions": lambda: RelPosBlock(WIDTH, HEADS, init_values=0.5),
    "relative positions, norm after attention": lambda: ResPostRelPosBlock(WIDTH, HEADS),
}


@torch.no_grad()
def random_block(build):
    torch.manual_seed(0)
    block = build().eval()
    for parameter in block.parameters():
        parameter.copy_(torch.randn_like(parameter) / 3 + (parameter.ndim == 1) / 2)
    return block


@pytest.mark.parametrize("name", BLOCKS)
@torch.no_grad()
def test_attention_to_a_single_token_returns_its_value(name):
    block, tokens = random_block(BLOCKS[name]), torch.randn(3, 1, WIDTH)
    assert block_has_value_attention(block)
    values = block_attention_values(block, tokens)
    assert values.shape == (3, 2 if name == "grouped queries" else HEADS, 1, WIDTH // HEADS)
    attended = block_attention_output(block, tokens, values)
    output = block_output_after_attention(block, tokens, attended)
    torch.testing.assert_close(output, block(tokens), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(output, tokens + attended, atol=1e-2)


def test_blocks_with_other_attention_are_not_accepted():
    custom = CustomResidualAttentionBlock(WIDTH, HEADS)
    differential = Block(WIDTH, HEADS, attn_layer="diff")
    for block in (custom, differential, ParallelScalingBlock(WIDTH, HEADS), nn.Linear(2, 2)):
        assert not block_has_value_attention(block)
