"""Last blocks of a frozen ViT, run again from cached tokens.

A network beside these blocks, or prompts inside them, can be trained without the lower blocks.
"""

from collections.abc import Iterator
from typing import Any, Self

import torch
from open_clip.model import VisionTransformer
from torch import Tensor, nn

from surelabel.encoders.towers.patch_features import self_aware_attention
from surelabel.encoders.towers.prompt_tokens import prompts_per_layer
from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes


class LastBlocks:
    """The last ``depth`` blocks, the final norm and the projection of a ViT, all frozen.

    It is not an ``nn.Module``, so the weights of the tower are not in the state dict of its
    owner. A deep copy returns the same object. Gradients are recorded only if tokens or prompts
    need them.

    Args:
        visual: Image tower of an open_clip model.
        depth: Number of blocks, 1 or more.

    Raises:
        ConfigError: If the tower is not a plain ViT, or has fewer blocks.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.2 and its appendix B: prompts in
        the last blocks, and self-aware attention beside them.
    """

    def __init__(self, visual: Any, depth: int):
        blocks = plain_vit_blocks(visual)
        check_block_count(blocks, depth)
        self._visual, self._blocks = visual, list(blocks[-depth:])
        self.depth, self.width = depth, int(visual.transformer.width)

    def check_first_block(self, first_block: int) -> None:
        """Check that the tower has a block with the index ``first_block``.

        Raises:
            ConfigError: If it does not.
        """
        check_first_block(self._visual.transformer.resblocks, first_block)

    def run_blocks(
        self, tokens: Tensor, prompts: Tensor | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Run block after block.

        Args:
            tokens: Input of the first of these blocks, class token first, ``(n, 1 + p, w)``.
            prompts: Prompts of each block, ``(depth, m, w)``, appended to its tokens. The outputs
                at the prompts are dropped, and the next block has its own prompts.

        Yields:
            For each block, the self-aware attention on its input, and its output tokens, both
            ``(n, 1 + p, w)``.

        Raises:
            InputError: If the shapes do not match.
        """
        check_shapes(tokens=(tokens, "n p w"))
        layer_prompts = prompts_per_layer(prompts, depth=self.depth, width=self.width)
        for block, prompt in zip(self._blocks, layer_prompts, strict=True):
            attended = self_aware_attention(block, tokens)
            tokens = _run_prompted_block(block, tokens, prompt)
            yield attended, tokens

    def project(self, tokens: Tensor) -> Tensor:
        """Project tokens ``(…, w)`` to the joint space ``(…, d)``, without normalization."""
        projected: Tensor = self._visual.ln_post(tokens) @ self._visual.proj
        return projected

    def pool(self, tokens: Tensor) -> Tensor:
        """Pool the output tokens and project them to the joint space, ``(n, d)``.

        The vectors are not normalized. For a tower that pools the class token the result is
        ``project(tokens[:, 0])``.

        Args:
            tokens: Output of the last block, ``(n, 1 + p, w)``.
        """
        pooled: Tensor = self._visual._pool(tokens)[0] @ self._visual.proj
        return pooled

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def plain_vit_blocks(visual: Any) -> Any:
    """Return the blocks of a plain ViT, which can be run one by one.

    Raises:
        ConfigError: If the tower is not a ViT of plain blocks, or pools with learned queries.
    """
    blocks = visual.transformer.resblocks if isinstance(visual, VisionTransformer) else []
    is_plain = all(isinstance(block.attn, nn.MultiheadAttention) for block in blocks)
    if not len(blocks) or not is_plain or visual.attn_pool is not None:
        raise ConfigError(
            "Running single blocks needs a plain ViT without attentional pooling; got "
            f"{type(visual).__name__}. Use tiny-vit or ViT-B-16/openai."
        )
    return blocks


def check_block_count(blocks: Any, depth: int) -> None:
    """Check that the tower has at least ``depth`` blocks.

    Raises:
        ConfigError: If it has fewer blocks, or ``depth`` is not an integer of 1 or more.
    """
    if not isinstance(depth, int) or not 1 <= depth <= len(blocks):
        raise ConfigError(
            f"depth must be a number of blocks from 1 to {len(blocks)} for this tower; "
            f"got {depth!r}."
        )


def check_first_block(blocks: Any, first_block: int) -> None:
    """Check that the tower has a block with the index ``first_block``.

    Raises:
        ConfigError: If it does not, or ``first_block`` is not an integer.
    """
    if not isinstance(first_block, int) or not 0 <= first_block < len(blocks):
        raise ConfigError(
            f"first_block must be the index of a block from 0 to {len(blocks) - 1} for this tower; "
            f"got {first_block!r}."
        )


def _run_prompted_block(block: Any, tokens: Tensor, prompt: Tensor | None) -> Tensor:
    """Return the output tokens of a block with prompts ``(m, w)`` appended to its input."""
    if prompt is None:
        output: Tensor = block(tokens)
        return output
    prompted = torch.cat([tokens, prompt.expand(len(tokens), -1, -1)], dim=1)
    without_prompts: Tensor = block(prompted)[:, : tokens.shape[1]]
    return without_prompts
