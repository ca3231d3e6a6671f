"""Compute text vectors of labels with learned prompt tokens in the last text layers."""

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.encoders.towers.deep_text_prompts import DeepPromptTextEncoder
from surelabel.errors import ConfigError

INITIAL_DEVIATION = 0.02  # standard deviation of the initial prompts
ALL_LAYERS = 10**6  # more layers than any text tower has


class PromptedLabels(nn.Module):
    """Compute text vectors of labels with learned prompt tokens in the last text layers.

    In evaluation mode without gradients, the vectors are computed once and cached until training
    continues or other weights are loaded.

    Args:
        encoder: Encoder whose text tower stays frozen.
        names: Labels.
        templates: Prompt templates, each with one ``{}``.
        prompts: Number of learned tokens per layer, >= 0. If 0, the vectors of the text tower are
            unchanged.
        layers: Number of last layers with prompts, limited by the depth of the tower. If None, the
            last quarter of the layers has prompts, at least one layer.

    Raises:
        ConfigError: If there are prompts, and the text tower does not support them.

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
        self._templates, self._layers = list(templates), layers
        self._text_encoder = self._deep_prompt_text_encoder(encoder, names, prompts)
        self.prompts: nn.Parameter | None = None
        if self._text_encoder is None:
            self.frozen = encoder.encode_labels(names, self._templates)
        else:
            depth, width = self._text_encoder.depth, self._text_encoder.width
            self.frozen = self._text_encoder.encode()
            self.prompts = initial_recover_match_prompts(depth, prompts, width)
        self._cached: Tensor | None = None

    def forward(self) -> Tensor:
        """Return one vector per label, ``(c, d)``.

        The vectors are normalized only if the text tower does not support prompts.
        """
        if self.prompts is None or self._text_encoder is None:
            return self.frozen
        if self.training or torch.is_grad_enabled():
            return self._text_encoder.encode(self.prompts)
        if self._cached is None:
            self._cached = self._text_encoder.encode(self.prompts)
        return self._cached

    @torch.no_grad()
    def encode_other_labels(self, encoder: Encoder, names: Sequence[str]) -> Tensor:
        """Return one vector for each label in ``names``, with the current prompts, ``(c, d)``."""
        n_prompts = 0 if self.prompts is None else self.prompts.shape[1]
        text_encoder = self._deep_prompt_text_encoder(encoder, names, n_prompts)
        if text_encoder is None:
            return encoder.encode_labels(names, self._templates)
        return text_encoder.encode() if self.prompts is None else text_encoder.encode(self.prompts)

    def _deep_prompt_text_encoder(
        self, encoder: Encoder, names: Sequence[str], prompts: int
    ) -> DeepPromptTextEncoder | None:
        """Return the text encoder of labels, or None if the tower supports no prompts.

        Raises:
            ConfigError: If there are prompts, and the text tower does not support them.
        """
        try:
            if self._layers is None:
                tower = encoder.deep_prompt_text_encoder(["a"], self._templates, depth=ALL_LAYERS)
                self._layers = max(1, tower.depth // 4)
            return encoder.deep_prompt_text_encoder(names, self._templates, depth=self._layers)
        except ConfigError:
            if prompts:
                raise
            return None

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
