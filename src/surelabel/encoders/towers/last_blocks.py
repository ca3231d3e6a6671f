"""Run the last blocks of a frozen ViT again from cached tokens.

With cached input tokens of the last blocks, a side network on these blocks, or prompts in these
blocks, can be trained without running the lower blocks.
"""

from collections.abc import Iterator
from typing import Any, Self

import torch
import torch.nn.functional as F
from open_clip.model import VisionTransformer
from torch import Tensor, nn

from surelabel.encoders.towers.patch_features import self_aware_output_of_block
from surelabel.encoders.towers.prompt_tokens import prompt_tokens_per_layer
from surelabel.encoders.towers.vit_towers import VitTower, vit_tower
from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes


class LastBlocks:
    """Frozen last blocks, final norm and projection of a ViT.

    A ``LastBlocks`` object is not an ``nn.Module``, so a module that contains the object does not
    save the weights of the tower. A deep copy returns the same object. Gradients are recorded only
    if the tokens or the prompts require gradients.

    In shapes, ``n`` is the number of images, and ``p`` is the number of patches. ``w`` is the width
    of the tower, and ``d`` is the dimension of the joint space.

    Args:
        visual: Image tower of an open_clip model, which must be a ViT.
        depth: Number of last blocks, 1 or more.

    Raises:
        ConfigError: If the tower is not a ViT with known attention layers and at most one class
            token, or ``depth`` is not an integer from 1 to the number of blocks.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.2 and appendix B: self-aware
        attention in the last blocks, and prompts in the last blocks.
    """

    def __init__(self, visual: Any, depth: int):
        self._tower = ladder_vit_tower(visual)
        check_last_block_count(self._tower.blocks, depth)
        self._blocks = list(self._tower.blocks[-depth:])
        self.depth, self.width = depth, self._tower.width

    def check_first_block(self, first_block: int) -> None:
        """Check that the tower has a block with the index ``first_block``.

        Raises:
            ConfigError: If the tower has no block with the index ``first_block``.
        """
        check_vit_block_index(self._tower.blocks, first_block)

    def run_blocks(
        self, tokens: Tensor, prompts: Tensor | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Run the last blocks one by one.

        Args:
            tokens: Input tokens of the first of the last blocks, class token first,
                ``(n, 1 + p, w)``.
            prompts: The ``m`` prompts of each block, ``(depth, m, w)``, which are appended to the
                input tokens of the block. The outputs at the prompts are dropped. If None, no
                prompts are appended.

        Yields:
            The output of self-aware attention and the output tokens of each block, both of shape
            ``(n, 1 + p, w)``. Self-aware attention is computed without the prompts of the block.

        Raises:
            InputError: If ``tokens`` is not a three-dimensional tensor, or if ``prompts`` does not
                have the shape ``(depth, m, w)``.
            ConfigError: If the tower has relative or rotary position embeddings, and ``prompts`` is
                not None.
        """
        check_shapes(tokens=(tokens, "n p w"))
        self.check_prompts(prompts)
        tower = self._tower
        layer_prompts = prompt_tokens_per_layer(prompts, depth=self.depth, width=self.width)
        tokens = tokens[:, 1 - tower.n_prefix :]
        for block, prompt in zip(self._blocks, layer_prompts, strict=True):
            attended = self_aware_output_of_block(tower, block, tokens)
            tokens = _run_last_block_with_prompts(tower, block, tokens, prompt)
            yield tokens_with_class_token(tower, attended), tokens_with_class_token(tower, tokens)

    def check_prompts(self, prompts: Tensor | None) -> None:
        """Check that prompts can be appended to the tokens of the tower.

        Raises:
            ConfigError: If the tower has relative or rotary position embeddings, and ``prompts`` is
                not None.
        """
        if prompts is not None and self._tower.has_relative_positions:
            raise ConfigError(
                "Visual prompts need a ViT with absolute position embeddings; this tower has "
                "relative or rotary position embeddings. Use method.visual_prompts=0."
            )

    def project(self, tokens: Tensor) -> Tensor:
        """Project tokens ``(…, w)`` to the joint space ``(…, d)``, without normalization."""
        return self._tower.project(tokens)

    def pool(self, tokens: Tensor) -> Tensor:
        """Pool the output tokens, and project the pooled vectors to the joint space, ``(n, d)``.

        The vectors are not normalized. If the tower pools the class token, the result equals
        ``project(tokens[:, 0])``.

        Args:
            tokens: Output tokens of the last block, ``(n, 1 + p, w)``.
        """
        return self._tower.pool(tokens[:, 1 - self._tower.n_prefix :])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def ladder_vit_tower(visual: Any) -> VitTower:
    """Return the ViT of an image tower, with at most one class token before the patch tokens.

    Raises:
        ConfigError: If the tower is not a ViT with known attention layers, or has more than one
            token before the patches.
    """
    tower = vit_tower(visual)
    if tower is None or tower.n_prefix > 1:
        raise ConfigError(
            "Methods that run single blocks need a ViT with standard attention blocks and at most "
            f"one class token; got {type(visual).__name__}. Use tiny-vit or ViT-B-16/openai."
        )
    return tower


def tokens_with_class_token(tower: VitTower, tokens: Tensor) -> Tensor:
    """Return tokens ``(n, 1 + p, w)`` with a first token of zeros if the tower has no class token.

    Args:
        tower: ViT with at most one class token.
        tokens: Tokens of the tower, ``(n, 1 + p, w)`` or ``(n, p, w)``.
    """
    return F.pad(tokens, (0, 0, 1 - tower.n_prefix, 0))


def plain_vit_blocks(visual: Any) -> Any:
    """Return the blocks of a plain ViT, which can be run one by one.

    In a plain ViT, each block has standard multi-head attention, and the pooling has no learned
    queries.

    Raises:
        ConfigError: If the tower is not a plain ViT.
    """
    blocks = visual.transformer.resblocks if isinstance(visual, VisionTransformer) else []
    is_plain = all(isinstance(block.attn, nn.MultiheadAttention) for block in blocks)
    if not len(blocks) or not is_plain or visual.attn_pool is not None:
        raise ConfigError(
            "Methods that run single blocks need a plain ViT (standard attention blocks, no "
            f"attentional pooling); got {type(visual).__name__}. Use tiny-vit or ViT-B-16/openai."
        )
    return blocks


def check_last_block_count(blocks: Any, depth: int, *, setting: str = "depth") -> None:
    """Check that ``depth`` is at least 1 and at most the number of blocks of the tower.

    Args:
        blocks: Blocks of the tower.
        depth: Number of last blocks.
        setting: Name of the setting, for the error message.

    Raises:
        ConfigError: If ``depth`` is not an integer from 1 to the number of blocks.
    """
    if not isinstance(depth, int) or not 1 <= depth <= len(blocks):
        raise ConfigError(
            f"{setting} must be a number of blocks from 1 to {len(blocks)} for this tower; "
            f"got {depth!r}."
        )


def check_vit_block_index(blocks: Any, first_block: int) -> None:
    """Check that the tower has a block with the index ``first_block``.

    Raises:
        ConfigError: If ``first_block`` is not an integer from 0 to the number of blocks - 1.
    """
    if not isinstance(first_block, int) or not 0 <= first_block < len(blocks):
        raise ConfigError(
            f"first_block must be the index of a block from 0 to {len(blocks) - 1} for this tower; "
            f"got {first_block!r}."
        )


def _run_last_block_with_prompts(
    tower: VitTower, block: Any, tokens: Tensor, prompt: Tensor | None
) -> Tensor:
    """Return the output of a block at ``tokens``, with prompts ``(m, w)`` appended to the input."""
    if prompt is None:
        return tower.run_block(block, tokens)
    prompted = torch.cat([tokens, prompt.expand(tokens.shape[0], -1, -1)], dim=1)
    return tower.run_block(block, prompted)[:, : tokens.shape[1]]
