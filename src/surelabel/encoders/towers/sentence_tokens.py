"""Compute vectors of sentences and of their tokens, and input tokens of the last text blocks."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders.towers.last_blocks import check_last_block_count
from surelabel.encoders.towers.text_tower import (
    END_TOKEN_POOLING,
    causal_attention_mask,
    causal_text_tower,
    text_tower,
)
from surelabel.records import Features


@torch.no_grad()
def sentence_token_features(model: Any, tokens: Tensor) -> Features:
    """Return unit vectors of sentences and of their tokens.

    The vector of a token is the last output of the text tower at this token, projected to the joint
    space and normalized. The tower computes the sentence vector from one token in the same way. The
    start and end tokens are included, but padding is not.

    Args:
        model: Model of open_clip.
        tokens: Token ids, ``(s, k)``, where k is the context length of the tower.

    Returns:
        Features with ``pooled`` ``(s, d)``, the vectors of ``encode_text``, ``patches`` ``(s, l,
        d)`` of the tokens, and ``patch_mask`` ``(s, l)``, where l is the number of tokens of the
        longest sentence. Vectors of padding are 0.

    Raises:
        ConfigError: If the text tower is not a transformer of open_clip.

    Source:
        Guo et al., Texts as Images in Prompt Tuning for Multi-Label Image Recognition, CVPR 2023,
        arXiv:2211.12739, section 3.3.
    """
    tower = text_tower(model)
    mask = tower.token_mask(tokens)
    length = int(mask.sum(dim=1).max()) if len(tokens) else 0
    if tower.is_causal and tower.pool in END_TOKEN_POOLING:
        tokens = tokens[:, :length]  # tokens after the end token have no effect
    embedded = tower.embed_tokens(tokens)
    hidden = tower.transformer(embedded, attn_mask=tower.attention_mask(embedded))
    vectors = F.normalize(tower.project(hidden).float(), dim=-1)
    return Features(
        pooled=tower.select_sentence_token(vectors, tower.end_positions(tokens)),
        patches=vectors[:, :length] * mask[:, :length, None],
        patch_mask=mask[:, :length],
    )


@torch.no_grad()
def sentence_block_tokens(model: Any, tokens: Tensor, *, depth: int) -> Features:
    """Return unit vectors of sentences, and the input tokens of the last blocks of the text tower.

    Args:
        model: Model of open_clip.
        tokens: Token ids, ``(s, k)``, where k is the context length of the tower.
        depth: Number of last blocks, 1 or more.

    Returns:
        Features with ``pooled`` ``(s, d)``, the vectors of ``encode_text``, ``layers[-depth - 1]``
        ``(s, l, w)`` with the input tokens of the last ``depth`` blocks, and ``patch_mask``
        ``(s, l)``. The mask is True for the tokens of a sentence up to the end token, and the
        values of padding are 0. The number of tokens of the longest sentence is l.

    Raises:
        ConfigError: If the text tower is not a causal tower of standard blocks that pools the end
            token, or has fewer than ``depth`` blocks.
    """
    tower = causal_text_tower(model)
    blocks = tower.transformer.resblocks
    check_last_block_count(blocks, depth)
    ends = tower.end_positions(tokens)
    length = int(ends.max()) + 1 if len(tokens) else 0
    hidden = entering = tower.embed_tokens(tokens[:, :length])
    attention_mask = causal_attention_mask(hidden)
    for index, block in enumerate(blocks):
        entering = hidden if index == len(blocks) - depth else entering
        hidden = block(hidden, attn_mask=attention_mask)
    mask = torch.arange(length, device=tokens.device) <= ends[:, None]
    pooled = tower.project(tower.select_sentence_token(hidden, ends)).float()
    return Features(
        pooled=F.normalize(pooled, dim=-1),
        layers={-depth - 1: entering * mask[..., None]},
        patch_mask=mask,
    )
