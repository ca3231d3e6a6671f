"""This module defines trainable copies of the last blocks of an image tower and a text tower."""

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.encoders.towers.last_blocks import check_last_block_count, plain_vit_blocks
from surelabel.encoders.towers.text_tower import (
    causal_attention_mask,
    causal_text_tower,
    project_text_outputs,
)
from surelabel.errors import ConfigError
from surelabel.records import Features
from surelabel.shapes import check_shapes

ROWS_PER_CHUNK = 256  # images or sentences that are run together


class TrainableLastBlocks(nn.Module):
    """Trainable copies of the last blocks of both towers, with final norms and projections.

    The copies start with the weights of the towers. Training the copies does not change the towers.

    Args:
        model: Model of open_clip.
        depth: Number of last blocks of each tower, 1 or more.

    Raises:
        ConfigError: If the image tower is not a plain ViT, if the text tower is not a causal tower
            of standard blocks that pools the end token, or if a tower has fewer than ``depth``
            blocks.
    """

    def __init__(self, model: Any, depth: int):
        super().__init__()
        self.images = TrainableImageBlocks(model.visual, depth)
        self.texts = TrainableTextBlocks(model, depth)


class TrainableImageBlocks(nn.Module):
    """Trainable copies of the last blocks, the final norm and the projection of a ViT.

    Args:
        visual: Image tower of an open_clip model.
        depth: Number of last blocks, 1 or more.

    Attributes:
        depth: Number of last blocks.
        first_block: Index of the first copied block in the tower, 0-based.

    Raises:
        ConfigError: If the tower is not a plain ViT that pools the class token or the mean of the
            patches, or has fewer than ``depth`` blocks.
    """

    def __init__(self, visual: Any, depth: int):
        super().__init__()
        blocks = plain_vit_blocks(visual)
        check_last_block_count(blocks, depth, setting="trained_blocks")
        if visual.pool_type not in ("tok", "avg") or visual.proj is None:
            raise ConfigError(
                "Trained image blocks need a ViT with class-token or average pooling and a "
                f"projection; got the pooling {visual.pool_type!r} of {type(visual).__name__}. Use "
                "tiny-vit or ViT-B-16/openai."
            )
        self.depth, self.first_block = depth, len(blocks) - depth
        self.blocks: Any = copy.deepcopy(blocks[-depth:])
        self.norm = copy.deepcopy(visual.ln_post)
        self.projection = nn.Parameter(visual.proj.detach().clone())
        self._pools_mean = visual.pool_type == "avg"
        self._norm_follows_pooling = bool(visual.final_ln_after_pool)
        self.requires_grad_(True)

    def forward(self, features: Features) -> Features:
        """Return unit vectors of images, ``pooled`` ``(n, d)``, and patches, ``(n, p, d)``.

        Args:
            features: Features with the input tokens of the first copied block in
                ``layers[-depth - 1]``, class token first, ``(n, 1 + p, w)``.

        Raises:
            ConfigError: If the features do not contain these tokens.
        """
        chunks = _block_input_tokens(features, self.depth).split(ROWS_PER_CHUNK)
        pooled, patches = zip(*map(self._run_blocks, chunks), strict=True)
        return Features(torch.cat(pooled), patches=torch.cat(patches), grid=features.grid)

    def _run_blocks(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        for block in self.blocks:
            tokens = block(tokens)
        vectors = self.norm(tokens) @ self.projection
        pooled, patches = vectors[:, 0], vectors[:, 1:]
        if self._pools_mean and self._norm_follows_pooling:
            pooled = self.norm(tokens[:, 1:].mean(dim=1)) @ self.projection
        elif self._pools_mean:
            pooled = patches.mean(dim=1)
        return F.normalize(pooled, dim=-1), F.normalize(patches, dim=-1)


class TrainableTextBlocks(nn.Module):
    """Trainable copies of the last blocks, the final norm and the projection of a text tower.

    Args:
        model: Model of open_clip.
        depth: Number of last blocks, 1 or more.

    Attributes:
        depth: Number of last blocks.

    Raises:
        ConfigError: If the text tower is not a causal tower of standard blocks that pools the end
            token, or has fewer than ``depth`` blocks.
    """

    def __init__(self, model: Any, depth: int):
        super().__init__()
        tower = causal_text_tower(model)
        blocks = tower.transformer.resblocks
        check_last_block_count(blocks, depth, setting="trained_blocks")
        self.depth = depth
        self.blocks: Any = copy.deepcopy(blocks[-depth:])
        self.norm = copy.deepcopy(tower.ln_final)
        self.projection = copy.deepcopy(tower.projection)
        self.requires_grad_(True)

    def forward(self, features: Features) -> Features:
        """Return unit vectors of sentences, ``pooled`` ``(s, d)``, and of tokens, ``(s, l, d)``.

        Args:
            features: Features with the input tokens of the first copied block in
                ``layers[-depth - 1]``, ``(s, l, w)``, and ``patch_mask``, ``(s, l)``. The last
                token of each sentence is its end token.

        Returns:
            Features with ``pooled``, ``patches`` and ``patch_mask``. Vectors of padding are 0.

        Raises:
            ConfigError: If the features do not contain these tokens.
        """
        tokens, mask = _block_input_tokens(features, self.depth), features.patch_mask
        check_shapes(tokens=(tokens, "s l w"), patch_mask=(mask, "s l"))
        assert mask is not None
        patches = torch.cat([self._run_blocks(chunk) for chunk in tokens.split(ROWS_PER_CHUNK)])
        ends = mask.sum(dim=1) - 1
        pooled = patches[torch.arange(len(patches), device=patches.device), ends]
        return Features(pooled, patches=patches * mask[..., None], patch_mask=mask)

    def _run_blocks(self, tokens: Tensor) -> Tensor:
        attention_mask = causal_attention_mask(tokens)
        for block in self.blocks:
            tokens = block(tokens, attn_mask=attention_mask)
        return F.normalize(project_text_outputs(tokens, self.norm, self.projection), dim=-1)


def _block_input_tokens(features: Features, depth: int) -> Tensor:
    """Return the input tokens of the last ``depth`` blocks."""
    layer = -depth - 1
    if layer not in (features.layers or {}):
        raise ConfigError(
            f"Trained blocks need their input tokens, features.layers[{layer}]; got only vectors "
            "of images or sentences. Give images and sentences instead of vectors, or set "
            "method.trained_blocks=0."
        )
    assert features.layers is not None
    return features.layers[layer]
