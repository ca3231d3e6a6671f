"""This module defines ViT towers of open_clip and timm whose blocks can be run one by one."""

from typing import Any, Protocol

import torch
from open_clip.model import TimmModel, VisionTransformer
from open_clip.transformer import AttentionalPooler
from timm.models.eva import Eva
from timm.models.vision_transformer import VisionTransformer as TimmVisionTransformer
from timm.models.vision_transformer_relpos import VisionTransformerRelPos
from torch import Tensor, nn

from surelabel.encoders.towers.block_attention import (
    block_attention_output,
    block_attention_values,
    block_has_value_attention,
    block_output_after_attention,
)
from surelabel.errors import ConfigError

TIMM_VITS = (TimmVisionTransformer, Eva, VisionTransformerRelPos)


class VitTower(Protocol):
    """ViT whose blocks can be run one by one, with the attention values of each block.

    In shapes, ``t`` is the number of tokens of an image, which are ``n_prefix`` tokens and ``p``
    patches. ``w`` is the width of the tower, ``e`` is the number of values of an attention head,
    and ``d`` is the dimension of the joint space.

    Attributes:
        blocks: Blocks of the tower.
        grid: Numbers of rows and columns of the patch grid.
        n_prefix: Number of class and register tokens, which precede the patches.
        pools_patches: Whether the outputs at the patches are pooled, so that training affects these
            outputs. If False, only the class token is pooled.
        width: Number of values ``w`` of each token.
        has_relative_positions: Whether the attention depends on relative or rotary position
            embeddings, so that no tokens can be appended.
    """

    blocks: Any
    grid: tuple[int, int]
    n_prefix: int
    pools_patches: bool
    width: int
    has_relative_positions: bool

    def embed(self, pixels: Tensor) -> Tensor:
        """Return the input tokens of the first block, ``(n, t, w)``."""

    def run_block(self, block: Any, tokens: Tensor) -> Tensor:
        """Return the output tokens of a block, ``(n, t, w)``."""

    def attention_values(self, block: Any, tokens: Tensor) -> Tensor:
        """Return the attention values of all heads of a block, ``(n, heads, t, e)``."""

    def attention_output(self, block: Any, tokens: Tensor, mixed: Tensor) -> Tensor:
        """Return the output ``(n, t, w)`` of attention that returned ``mixed`` for each head.

        The result is the output of the attention branch before the addition to the residual
        ``tokens``.
        """

    def output_after_attention(self, block: Any, tokens: Tensor, attended: Tensor) -> Tensor:
        """Return the output ``(n, t, w)`` of a block whose attention output is ``attended``."""

    def pool(self, tokens: Tensor) -> Tensor:
        """Pool the outputs of the last block, and project them to the joint space, ``(n, d)``.

        The vectors are not normalized.
        """

    def project(self, tokens: Tensor) -> Tensor:
        """Pool each token ``(…, w)`` separately, and project it to the joint space, ``(…, d)``.

        The vectors are not normalized.
        """


class OpenClipVit:
    """ViT of open_clip, as described in :class:`VitTower`.

    Args:
        visual: Image tower of an open_clip model.

    Raises:
        ConfigError: If the tower does not pool the class token or the patches into one vector.
    """

    n_prefix = 1
    attention_values = staticmethod(block_attention_values)
    attention_output = staticmethod(block_attention_output)
    output_after_attention = staticmethod(block_output_after_attention)

    def __init__(self, visual: VisionTransformer):
        self._visual: Any = visual
        if self._visual.pool_type == "none":  # also with attentional_pool "parallel" and "cascade"
            raise ConfigError(
                "Patch vectors need a ViT with class-token pooling, average pooling or one "
                "attentional pooler; got pool_type 'none'. Use a method that needs only the pooled "
                "vector."
            )
        self.blocks: Any = self._visual.transformer.resblocks
        rows, columns = self._visual.grid_size
        self.grid = (int(rows), int(columns))
        self.pools_patches = self._visual.attn_pool is not None or self._visual.pool_type == "avg"
        self.width, self.has_relative_positions = int(self._visual.transformer.width), False

    def embed(self, pixels: Tensor) -> Tensor:
        """Return the input tokens of the first block, ``(n, t, w)``."""
        tokens: Tensor = self._visual._embeds(pixels)
        return tokens

    def run_block(self, block: Any, tokens: Tensor) -> Tensor:
        """Return the output tokens of a block, ``(n, t, w)``."""
        output: Tensor = block(tokens)
        return output

    def pool(self, tokens: Tensor) -> Tensor:
        """Pool the outputs of the last block, and project them to the joint space, ``(n, d)``.

        The vectors are not normalized.
        """
        pooled: Tensor = self._visual._pool(tokens)[0] @ self._visual.proj
        return pooled

    def project(self, tokens: Tensor) -> Tensor:
        """Pool each token ``(…, w)`` separately, and project it to the joint space, ``(…, d)``.

        The result is the output of the tower if its last block returned only copies of the token.
        The vectors are not normalized.
        """
        visual = self._visual
        if visual.attn_pool is None:
            projected: Tensor = visual.ln_post(tokens) @ visual.proj
            return projected
        pooled = _attentional_pooling_of_one_token(visual.attn_pool, tokens)
        projected = visual.ln_post(pooled) @ visual.proj
        return projected


class TimmVit:
    """ViT of timm in an image tower of open_clip, as described in :class:`VitTower`.

    Args:
        visual: Image tower of an open_clip model.
    """

    attention_values = staticmethod(block_attention_values)
    attention_output = staticmethod(block_attention_output)
    output_after_attention = staticmethod(block_output_after_attention)

    def __init__(self, visual: TimmModel):
        self._trunk: Any = visual.trunk
        self._head = visual.head
        self.blocks: Any = self._trunk.blocks
        rows, columns = self._trunk.patch_embed.grid_size
        self.grid, self.n_prefix = (int(rows), int(columns)), int(self._trunk.num_prefix_tokens)
        self.pools_patches = self._trunk.global_pool != "token"
        self.width = int(self._trunk.embed_dim)
        has_rope = isinstance(self._trunk, Eva) and self._trunk.rope is not None
        self.has_relative_positions = has_rope or isinstance(self._trunk, VisionTransformerRelPos)

    def embed(self, pixels: Tensor) -> Tensor:
        """Return the input tokens of the first block, ``(n, t, w)``."""
        trunk = self._trunk
        tokens: Tensor = trunk.patch_embed(pixels)
        if isinstance(trunk, VisionTransformerRelPos):
            if trunk.cls_token is None:
                return tokens
            return torch.cat([trunk.cls_token.expand(tokens.shape[0], -1, -1), tokens], dim=1)
        if isinstance(trunk, Eva):
            tokens = trunk._pos_embed(tokens)[0]
        else:
            tokens = trunk.patch_drop(trunk._pos_embed(tokens))
        normalized: Tensor = trunk.norm_pre(tokens)
        return normalized

    def run_block(self, block: Any, tokens: Tensor) -> Tensor:
        """Return the output tokens of a block, ``(n, t, w)``."""
        trunk: Any = self._trunk
        if isinstance(trunk, Eva):
            rope_of_grid: Any = trunk.rope
            rope = None if rope_of_grid is None else rope_of_grid.get_embed()
            output: Tensor = block(tokens, rope=rope)
        elif isinstance(trunk, VisionTransformerRelPos):
            shared = trunk.shared_rel_pos
            output = block(tokens, shared_rel_pos=None if shared is None else shared.get_bias())
        else:
            output = block(tokens)
        return output

    def pool(self, tokens: Tensor) -> Tensor:
        """Pool the outputs of the last block, and project them to the joint space, ``(n, d)``.

        The vectors are not normalized.
        """
        pooled: Tensor = self._head(self._trunk.forward_head(self._trunk.norm(tokens)))
        return pooled

    def project(self, tokens: Tensor) -> Tensor:
        """Pool each token ``(…, w)`` separately, and project it to the joint space, ``(…, d)``.

        The vectors are not normalized.
        """
        return project_timm_tokens(self._trunk, self._head, self._trunk.norm(tokens))


def project_timm_tokens(trunk: Any, head: nn.Module, tokens: Tensor) -> Tensor:
    """Pool each output token of a timm transformer separately, and apply the head, ``(…, d)``.

    The input of the pooling is one token, copied to all prefix tokens and one patch. All inputs are
    equal, so class-token and mean pooling return the token, and attention weights have no effect.
    Attention pooling applies its value and output projections and its MLP to the token.

    Args:
        trunk: Network of timm.
        head: Head of the image tower after the network.
        tokens: Outputs of the network after its final norm, ``(…, w)``.
    """
    single = tokens.flatten(0, -2)[:, None].expand(-1, trunk.num_prefix_tokens + 1, -1)
    projected: Tensor = head(trunk.forward_head(single)).unflatten(0, tokens.shape[:-1])
    return projected


def vit_tower(visual: Any) -> OpenClipVit | TimmVit | None:
    """Return the ViT of an image tower, or None if its blocks cannot be run one by one.

    The values and outputs of the self-attention of each block must be known; see
    :func:`block_has_value_attention`. The pooling must be defined for a single token.

    Args:
        visual: Image tower of an open_clip model.

    Raises:
        ConfigError: If a ViT of open_clip does not pool the class token or the patches into one
            vector.
    """
    if isinstance(visual, VisionTransformer):
        blocks = visual.transformer.resblocks
        return OpenClipVit(visual) if all(map(block_has_value_attention, blocks)) else None
    if not isinstance(visual, TimmModel) or type(visual.trunk) not in TIMM_VITS:
        return None
    trunk: Any = visual.trunk
    has_own_pooling = "pool" in dict(visual.head.named_children())
    has_varying_rope = isinstance(trunk, Eva) and (trunk.dynamic_img_size or trunk.rope_mixed)
    if has_own_pooling or has_varying_rope or not _grid_is_that_of_image_size(visual):
        return None
    return TimmVit(visual) if all(map(block_has_value_attention, trunk.blocks)) else None


def _grid_is_that_of_image_size(visual: TimmModel) -> bool:
    """Return whether the grid of a timm tower matches its image size, not only its pretraining."""
    embedding: Any = visual.trunk.patch_embed
    if not getattr(visual.trunk, "dynamic_img_size", False):
        return True
    sides = zip(visual.image_size, embedding.patch_size, strict=True)
    return tuple(embedding.grid_size) == tuple(side // patch for side, patch in sides)


def vit_block_inputs(tower: VitTower, tokens: Tensor, *, count: int) -> list[Tensor]:
    """Return the input tokens of the last ``count`` blocks, and the output tokens of the tower.

    Args:
        tower: ViT.
        tokens: Input tokens of the first block, ``(n, t, w)``.
        count: Number of last blocks, from 0 to the number of blocks.

    Returns:
        ``count + 1`` tensors ``(n, t, w)``, the output tokens last.
    """
    inputs = []
    for index, block in enumerate(tower.blocks):
        if index >= len(tower.blocks) - count:
            inputs.append(tokens)
        tokens = tower.run_block(block, tokens)
    return [*inputs, tokens]


def _attentional_pooling_of_one_token(pooler: AttentionalPooler, tokens: Tensor) -> Tensor:
    """Return the output of attentional pooling for each token ``(…, w)`` separately.

    Attention to a single token returns the value of this token for all queries.
    """
    attention: Any = pooler.attn
    weight = attention.v_proj_weight
    if weight is None:
        weight = attention.in_proj_weight.chunk(3)[2]
    bias = attention.in_proj_bias.chunk(3)[2]
    values = nn.functional.linear(pooler.ln_k(tokens), weight, bias)
    output: Tensor = attention.out_proj(values)
    return output
