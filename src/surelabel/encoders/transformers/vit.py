"""This module defines image towers of transformers whose blocks can be run one by one."""

from typing import Any

from torch import Tensor

from surelabel.encoders.towers.block_attention import split_attention_heads

INTERPOLATING_TOWERS = ("clip_vision_model", "metaclip_2_vision_model", "siglip_vision_model")


class TransformersVit:
    """ViT of transformers for images with one patch grid, as described in :class:`VitTower`.

    Args:
        model: Dual encoder of transformers: CLIP, MetaCLIP 2, SigLIP, SigLIP 2 or TIPSv2.
        grid: Numbers of rows and columns of the patch grid.
    """

    has_relative_positions = False

    def __init__(self, model: Any, grid: tuple[int, int]):
        self._model, self._tower, self.grid = model, model.vision_model, grid
        self._kind = model.config.model_type
        encoder, config = self._tower.encoder, self._tower.config
        self.width = int(config.hidden_size)
        self.pools_patches = self._kind in ("siglip", "siglip2", "tipsv2")
        if self._kind == "tipsv2":
            self.blocks: Any = encoder.layer
            self.n_prefix = 1 + int(config.num_register_tokens)
        else:
            self.blocks = encoder.layers
            self.n_prefix = 0 if self._kind in ("siglip", "siglip2") else 1

    def embed(self, pixels: Tensor, *details: Tensor) -> Tensor:
        """Return the input tokens of the first block, ``(n, t, w)``.

        Args:
            pixels: Pixels of the images, as the tower of transformers expects them.
            details: Numbers of rows and columns of each image for SigLIP 2 NaFlex, ``(n, 2)``.
        """
        options = position_options(self._tower.config.model_type)
        tokens: Tensor = self._tower.embeddings(pixels, *details, **options)
        if self._kind in ("clip", "metaclip_2"):
            tokens = self._tower.pre_layrnorm(tokens)
        return tokens

    def run_block(self, block: Any, tokens: Tensor) -> Tensor:
        """Return the output tokens of a block, ``(n, t, w)``."""
        output: Tensor = block(tokens, attention_mask=None)
        return output

    def attention_values(self, block: Any, tokens: Tensor) -> Tensor:
        """Return the attention values of all heads of a block, ``(n, heads, t, e)``."""
        if self._kind == "tipsv2":
            values = block.attention.v_proj(block.norm1(tokens))
        else:
            values = block.self_attn.v_proj(block.layer_norm1(tokens))
        return split_attention_heads(values, int(self._tower.config.num_attention_heads))

    def attention_output(self, block: Any, tokens: Tensor, mixed: Tensor) -> Tensor:
        """Return the output ``(n, t, w)`` of attention that returned ``mixed`` for each head."""
        merged = mixed.transpose(1, 2).flatten(2)
        if self._kind == "tipsv2":
            output: Tensor = block.layer_scale1(block.attention.o_proj(merged))
        else:
            output = block.self_attn.out_proj(merged)
        return output

    def output_after_attention(self, block: Any, tokens: Tensor, attended: Tensor) -> Tensor:
        """Return the output ``(n, t, w)`` of a block whose attention output is ``attended``."""
        tokens = tokens + attended
        if self._kind == "tipsv2":
            output: Tensor = tokens + block.layer_scale2(block.mlp(block.norm2(tokens)))
        else:
            output = tokens + block.mlp(block.layer_norm2(tokens))
        return output

    def pool(self, tokens: Tensor) -> Tensor:
        """Pool the outputs of the last block, and project them to the joint space, ``(n, d)``."""
        if self._kind in ("siglip", "siglip2"):
            pooled: Tensor = self._tower.head(self._tower.post_layernorm(tokens))
            return pooled
        return self.project(tokens[:, 0])

    def project(self, tokens: Tensor) -> Tensor:
        """Pool each token ``(…, w)`` separately, and project it to the joint space, ``(…, d)``.

        - CLIP and MetaCLIP 2: the final norm and the projection of the class token are applied.
        - SigLIP and SigLIP 2: the final norm and the attention pooling are applied to one token.
        - TIPSv2: the final norm is applied; its outputs are in the joint space.
        """
        projected: Tensor
        if self._kind == "tipsv2":
            projected = self._tower.layernorm(tokens)
        elif self._kind in ("siglip", "siglip2"):
            single = self._tower.post_layernorm(tokens).flatten(0, -2)[:, None]
            projected = self._tower.head(single).unflatten(0, tokens.shape[:-1])
        else:
            projected = self._model.visual_projection(self._tower.post_layernorm(tokens))
        return projected


def position_options(tower_type: str) -> dict[str, bool]:
    """Return the option with which a tower interpolates its position embeddings to any image size.

    The result is empty for SigLIP 2 NaFlex and TIPSv2, whose towers always interpolate.

    Args:
        tower_type: ``model_type`` of the image tower.
    """
    return {"interpolate_pos_encoding": True} if tower_type in INTERPOLATING_TOWERS else {}
