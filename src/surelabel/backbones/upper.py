"""The last blocks of a frozen ViT, run again from tokens that were kept: what is trained beside
them, or inside them as prompts, never sees the blocks below."""

from collections.abc import Iterator
from typing import Any, Self

import torch
from open_clip.model import VisionTransformer
from torch import Tensor, nn

from surelabel.backbones.dense import self_attended
from surelabel.backbones.prompts import for_each
from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes


class Upper:
    """The last ``depth`` blocks of a ViT, its closing norm and its projection, all frozen.

    It is no module, so that the tower's weights never become part of what holds it, and a copy of
    it is itself. Where neither tokens nor prompts need gradients, none are recorded.

    Args:
        visual: The image tower of an open_clip model.
        depth: How many blocks, from 1 to all.

    Raises:
        ConfigError: the tower has no such blocks.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.2 and its appendix B: prompts in
        the last blocks, and self-aware attention beside them.
    """

    def __init__(self, visual: Any, depth: int):
        blocks = open_blocks(visual)
        check_depth(blocks, depth)
        self._visual, self._blocks = visual, list(blocks[-depth:])
        self.depth, self.width = depth, int(visual.transformer.width)

    def check_first(self, first: int) -> None:
        """Refuse a first block of a ladder that the tower does not have.

        Raises:
            ConfigError: it does not.
        """
        check_first(self._visual.transformer.resblocks, first)

    def steps(
        self, tokens: Tensor, prompts: Tensor | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Run block after block.

        Args:
            tokens: What enters the first of them, class token first, ``(n, 1 + p, w)``.
            prompts: What stands behind these tokens within each block, ``(depth, m, w)``. A block
                drops what it made of them, and the next has its own.

        Yields:
            For each block the self-aware attention of what enters it, and the tokens after it,
            both ``(n, 1 + p, w)``.

        Raises:
            InputError: shapes do not go together.
        """
        check_shapes(tokens=(tokens, "n p w"))
        each = for_each(prompts, depth=self.depth, width=self.width)
        for block, prompt in zip(self._blocks, each, strict=True):
            attended = self_attended(block, tokens)
            tokens = _after(block, tokens, prompt)
            yield attended, tokens

    def joint(self, tokens: Tensor) -> Tensor:
        """Tokens ``(…, w)`` in the joint space ``(…, d)``, not of unit length."""
        projected: Tensor = self._visual.ln_post(tokens) @ self._visual.proj
        return projected

    def pooled(self, tokens: Tensor) -> Tensor:
        """The vectors ``(n, d)`` of whole pictures, not of unit length, of all their last tokens.

        For a tower that pools its class token it is ``joint(tokens[:, 0])``.
        """
        pooled: Tensor = self._visual._pool(tokens)[0] @ self._visual.proj
        return pooled

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def open_blocks(visual: Any) -> Any:
    """The blocks of a ViT that can be run one by one.

    Raises:
        ConfigError: the tower is no ViT of plain blocks, or pools by learnt queries.
    """
    blocks = visual.transformer.resblocks if isinstance(visual, VisionTransformer) else []
    plain = all(isinstance(block.attn, nn.MultiheadAttention) for block in blocks)
    if not len(blocks) or not plain or visual.attn_pool is not None:
        raise ConfigError(
            "Blocks that can be run one by one are those of a plain ViT. Got "
            f"{type(visual).__name__}; take tiny-vit, or ViT-B-16/openai."
        )
    return blocks


def check_depth(blocks: Any, depth: int) -> None:
    """Refuse a number of blocks that the tower does not have.

    Raises:
        ConfigError: it does not.
    """
    if not isinstance(depth, int) or not 1 <= depth <= len(blocks):
        raise ConfigError(
            f"depth must be a number of blocks from 1 to {len(blocks)} for this tower. "
            f"Got {depth!r}."
        )


def check_first(blocks: Any, first: int) -> None:
    """Refuse a first block that the tower does not have.

    Raises:
        ConfigError: it does not.
    """
    if not isinstance(first, int) or not 0 <= first < len(blocks):
        raise ConfigError(
            f"first must be a block from 0 to {len(blocks) - 1} for this tower. Got {first!r}."
        )


def _after(block: Any, tokens: Tensor, prompt: Tensor | None) -> Tensor:
    """Tokens after a block in which prompts ``(m, w)`` stood behind them."""
    if prompt is None:
        after: Tensor = block(tokens)
        return after
    longer = torch.cat([tokens, prompt.expand(len(tokens), -1, -1)], dim=1)
    seen: Tensor = block(longer)[:, : tokens.shape[1]]
    return seen
