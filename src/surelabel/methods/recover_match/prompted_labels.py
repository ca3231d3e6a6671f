"""Text vectors of labels with learned prompt tokens in the last layers of the text tower."""

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from surelabel.encoders import Encoder

INITIAL_DEVIATION = 0.02  # standard deviation of the initial prompts
ALL_LAYERS = 10**6  # more layers than any text tower has


class PromptedLabels(nn.Module):
    """Compute text vectors of labels with trained prompt tokens in the last text layers.

    Outside training, the vectors are computed once and cached until training continues or other
    weights are loaded.

    Args:
        encoder: Encoder with a text tower, which stays frozen.
        names: Labels.
        templates: Prompt templates, each with one ``{}``.
        prompts: Number of learned tokens per layer, >= 0. If 0, the vectors of the text tower are
            unchanged.
        layers: Number of last layers with prompts, limited by the depth of the tower. If None, the
            last quarter of the layers has prompts, at least one layer.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, section 4.1 (eq. 2).
    """

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        templates: Sequence[str],
        *,
        prompts: int,
        layers: int | None,
    ):
        super().__init__()
        if layers is None:
            whole_tower = encoder.deep_prompt_text_encoder(["thing"], templates, depth=ALL_LAYERS)
            layers = max(1, whole_tower.depth // 4)
        self._templates, self._layers = list(templates), layers
        self._text_encoder = encoder.deep_prompt_text_encoder(names, templates, depth=layers)
        self.frozen = self._text_encoder.encode()
        self.prompts = initial_recover_match_prompts(
            self._text_encoder.depth, prompts, self._text_encoder.width
        )
        self._cached: Tensor | None = None

    def forward(self) -> Tensor:
        """Return one vector per label, not normalized, ``(c, d)``."""
        if self.prompts is None:
            return self.frozen
        if self.training or torch.is_grad_enabled():
            return self._text_encoder.encode(self.prompts)
        if self._cached is None:
            self._cached = self._text_encoder.encode(self.prompts)
        return self._cached

    @torch.no_grad()
    def encode_other_labels(self, encoder: Encoder, names: Sequence[str]) -> Tensor:
        """Return one vector per label ``names``, with the current prompts, ``(c, d)``."""
        text_encoder = encoder.deep_prompt_text_encoder(names, self._templates, depth=self._layers)
        return text_encoder.encode() if self.prompts is None else text_encoder.encode(self.prompts)

    def train(self, mode: bool = True) -> Self:
        """Set training or evaluation mode, and drop the cached vectors."""
        self._cached = None
        return super().train(mode)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        self._cached = None
        super()._load_from_state_dict(*arguments)


def initial_recover_match_prompts(layers: int, count: int, width: int) -> nn.Parameter | None:
    """Return random prompts ``(layers, count, width)``, or None if ``count`` is 0."""
    if not count:
        return None
    return nn.Parameter(INITIAL_DEVIATION * torch.randn(layers, count, width))
