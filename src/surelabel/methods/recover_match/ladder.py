"""Compute region vectors with the Ladder Local Adapter, a side network beside a frozen ViT."""

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.errors import InputError
from surelabel.methods.recover_match.prompted_labels import initial_recover_match_prompts
from surelabel.records import Features
from surelabel.shapes import check_shapes

KERNEL_SIZES = (1, 3)  # kernel sizes, in patches, of the convolutions of the two streams
BlockOutput = tuple[Tensor, Tensor]  # self-aware attention of a block, and its output tokens


class LadderLocalAdapter(nn.Module):
    """Compute region vectors from self-aware attention and text-guided spatial selection.

        x_local = sum over blocks of (self-aware attention + selection(tokens after the block))

    Self-aware attention is the value-to-value attention of a block, and selection is
    ``LadderTextGuidedSelection``. The weights of the tower are not trained, and its lower blocks
    are not run again.

    Args:
        encoder: Encoder whose image tower is a ViT that stays frozen.
        depth: Number of last blocks with a text-guided selection.
        self_aware: Whether region vectors are computed from self-aware attention. If False, region
            vectors are computed from the last tokens of the tower.
        text_guided_selection: Whether text-guided selections are added.
        prompts: Number of learned tokens in each of the last ``depth`` blocks. The learned tokens
            change the vector of the whole image.
        variant: Blocks in the sum of self-aware attention. With ``"code"``, the sum starts at the
            first block of the ladder features, as in the released code. With ``"paper"``, the sum
            contains only the last ``depth`` blocks. The masks also differ; see
            ``LadderTextGuidedSelection``.

    Raises:
        ConfigError: If the image tower is not a ViT, has fewer than ``depth`` blocks, or has
            relative or rotary position embeddings and ``prompts`` is above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, section 4.2 (eq. 3
        to 5).

    Differs:
        In the paper and in the released code, the sum begins with the input tokens of its first
        block; here the sum begins with zero. Both sums were compared on 500 validation images of
        Scenes with the frozen `tiny-vit`. The percentage of labels whose highest-scoring patch is
        inside a box of the label was measured. With sums from the first block on, the percentage is
        75.2 % without the input tokens, and 74.8 % with the input tokens. With sums from the fourth
        block on, the percentage is 73.7 % without and 66.3 % with the input tokens. For the patches
        of the unchanged tower, it is 12.6 %; the chance level is 11 %.

        The paper averages the self-aware attention and the selection of a block, and the released
        code adds them. If the sum has no other terms, the results are equal after the final layer
        norm.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        depth: int,
        self_aware: bool,
        text_guided_selection: bool,
        prompts: int,
        variant: Literal["paper", "code"],
    ):
        super().__init__()
        self._last_blocks = encoder.last_blocks(depth)
        self.self_aware, self.variant = self_aware, variant
        n_selections = depth if text_guided_selection else 0
        width = self._last_blocks.width
        selections = [
            LadderTextGuidedSelection(width, encoder.width, variant=variant)
            for _ in range(n_selections)
        ]
        self.selections = nn.ModuleList(selections)
        self.prompts = initial_recover_match_prompts(depth, prompts, width)
        self._last_blocks.check_prompts(self.prompts)

    def run_blocks(self, features: Features) -> list[BlockOutput]:
        """Run the last blocks of the tower with the visual prompts, and return their outputs.

        Raises:
            InputError: If the features lack the inputs of the last blocks, the sum of self-aware
                attention, or the grid.
        """
        return list(self._last_blocks.run_blocks(self._block_input(features), self.prompts))

    def image_vectors(self, features: Features, outputs: list[BlockOutput]) -> Tensor:
        """Return image vectors ``(n, d)``, which are normalized only if there are no prompts."""
        return features.pooled if self.prompts is None else self._last_blocks.pool(outputs[-1][1])

    def region_vectors(
        self, features: Features, outputs: list[BlockOutput], texts: Tensor
    ) -> Tensor:
        """Return the vectors of regions, not normalized, ``(n, p, d)``.

        Args:
            features: Features of kind ``ladder``.
            outputs: Outputs of ``run_blocks``.
            texts: Vectors of the labels, ``(c, d)``.
        """
        assert features.grid is not None
        terms = (
            self._self_aware_terms(features, outputs)
            if self.self_aware
            else [outputs[-1][1][:, 1:]]
        )
        if self.variant == "paper" and self.self_aware:
            terms = terms[1:]
        for selection, (_, tokens) in zip(self.selections, outputs, strict=False):
            terms = [*terms, selection(tokens[:, 1:], features.grid, texts)]
        return self._last_blocks.project(torch.stack(terms).sum(dim=0))

    @torch.no_grad()
    def frozen_region_vectors(self, features: Features, outputs: list[BlockOutput]) -> Tensor:
        """Return the region vectors of the frozen encoder, ``(n, p, d)``.

        The vectors are computed from self-aware attention, without selections and prompts, and are
        not normalized. In both variants, the sum starts at the first block of the ladder features.
        """
        if self.prompts is not None:
            outputs = list(self._last_blocks.run_blocks(self._block_input(features)))
        terms = self._self_aware_terms(features, outputs)
        return self._last_blocks.project(torch.stack(terms).sum(dim=0))

    def _self_aware_terms(self, features: Features, outputs: list[BlockOutput]) -> list[Tensor]:
        """Return self-aware attention: the sum over lower blocks, then one term per last block."""
        assert features.self_aware_sum is not None
        return [features.self_aware_sum, *(attended[:, 1:] for attended, _ in outputs)]

    def _block_input(self, features: Features) -> Tensor:
        layer = -self._last_blocks.depth - 1
        layers = features.layers or {}
        if features.self_aware_sum is None or features.grid is None or layer not in layers:
            raise InputError(
                f"recover_match needs features.grid, features.layers[{layer}] and "
                "features.self_aware_sum; at least one is missing. Encode images with "
                f"kind='ladder/FIRST/{self._last_blocks.depth}', where FIRST is method.first_block."
            )
        return layers[layer]


class LadderTextGuidedSelection(nn.Module):
    """Apply text-guided spatial selection: cross-attention to labels, then spatial masks.

        A_i = gelu(norm(conv_i(x)))                          i = 1: 1 by 1, i = 2: 3 by 3
        A_i <- A_i + softmax over labels (LN_i(A_i) · LN(t)' / sqrt(d)) LN(t)
        m   = sigmoid(conv3x3(mean and max over the channels of A_1 and A_2))
        out = W (A_1 · m_1 + A_2 · m_2)

    x are the patch tokens as maps, t the label vectors, and d the width of A_i and t. conv_1 and
    conv_2 are convolutions of 1 by 1 and 3 by 3 patches, norm is a batch norm, and LN_i and LN are
    layer norms. LN(t)' is the transpose of LN(t), m are the two masks m_1 and m_2, and W is a 1 by
    1 convolution.

    Args:
        width: Width of the tokens (w).
        joint: Width of the label vectors, and of the maps A_1 and A_2 (d).
        variant: Variant of the convolution that computes the two masks. With ``"code"``, each mask
            is computed from the mean and the maximum over the channels, as in the released code.
            With ``"paper"``, m_1 is computed from the mean, and m_2 from the maximum.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, sections 4.2 and A.5
        (eq. 4).

    Differs:
        The mask convolution is depth-wise in the paper and full in the released code. The input
        contains no class token; in the released code, the class token is passed through unchanged
        and dropped later.
    """

    def __init__(self, width: int, joint: int, *, variant: Literal["paper", "code"] = "code"):
        super().__init__()
        n_streams = len(KERNEL_SIZES)
        self.down_convs = nn.ModuleList(
            [nn.Conv2d(width, joint, k, padding=k // 2, bias=False) for k in KERNEL_SIZES]
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(joint) for _ in KERNEL_SIZES)
        self.query_norms = nn.ModuleList(nn.LayerNorm(joint) for _ in KERNEL_SIZES)
        self.key_norm = nn.LayerNorm(joint)
        groups = n_streams if variant == "paper" else 1
        self.mask_conv = nn.Conv2d(2, n_streams, 3, padding=1, groups=groups, bias=False)
        self.up_conv = nn.Conv2d(joint, width, 1, bias=False)

    def forward(self, patches: Tensor, grid: tuple[int, int], texts: Tensor) -> Tensor:
        """Return one vector per patch, ``(n, p, w)``.

        Args:
            patches: Output tokens of a block without the class token, row by row of the grid,
                ``(n, p, w)``.
            grid: Numbers of rows and columns of the patch grid.
            texts: Vectors of the labels, not normalized, ``(c, d)``.
        """
        check_shapes(patches=(patches, "n p w"), texts=(texts, "c d"))
        maps = patches.transpose(1, 2).unflatten(2, grid)
        keys = self.key_norm(texts)
        streams = [
            _add_ladder_attention_to_labels(
                F.gelu(_ladder_batch_norm(norm, conv(maps))), query_norm, keys
            )
            for conv, norm, query_norm in zip(
                self.down_convs, self.norms, self.query_norms, strict=True
            )
        ]
        both = torch.cat(streams, dim=1)
        channel_statistics = torch.stack([both.mean(dim=1), both.amax(dim=1)], dim=1)
        masks = self.mask_conv(channel_statistics).sigmoid().unbind(1)
        selected = sum(a * m[:, None] for a, m in zip(streams, masks, strict=True))
        output: Tensor = self.up_conv(selected).flatten(2).transpose(1, 2)
        return output


def _ladder_batch_norm(norm: Any, maps: Tensor) -> Tensor:
    """Apply a batch norm; in training on a single patch, use the running statistics."""
    if norm.training and maps[:, 0].numel() == 1:
        return F.batch_norm(maps, norm.running_mean, norm.running_var, norm.weight, norm.bias)
    normalized: Tensor = norm(maps)
    return normalized


def _add_ladder_attention_to_labels(maps: Tensor, query_norm: nn.Module, keys: Tensor) -> Tensor:
    """Add the attention over labels ``(c, d)`` to each cell of maps ``(n, d, down, across)``."""
    cells = maps.movedim(1, -1)
    shares: Tensor = (query_norm(cells) @ keys.T / keys.shape[1] ** 0.5).softmax(dim=-1)
    return (cells + shares @ keys).movedim(-1, 1)
