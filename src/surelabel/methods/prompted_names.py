"""Names as a text tower reads them with learnt tokens in its last layers."""

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from surelabel.backbones import Backbone

SPREAD = 0.02  # of prompts at the start
ALL = 10**6  # layers; no tower has more


class PromptedNames(nn.Module):
    """Vectors of names; prompts in the last text layers learn how names are read.

    In use the vectors are computed once for a list of names, and kept until training goes on or
    other prompts are loaded.

    Args:
        backbone: Gives the text tower, which stays as it is.
        names: What to look for.
        templates: Sentences with one ``{}``.
        prompts: Learnt tokens in each layer; with none the names are those of the tower.
        layers: How many of the last layers have them; all, where the tower has fewer; None for the
            last quarter, one at least.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, section 4.1 (eq. 2).
    """

    def __init__(
        self,
        backbone: Backbone,
        names: Sequence[str],
        templates: Sequence[str],
        *,
        prompts: int,
        layers: int | None,
    ):
        super().__init__()
        if layers is None:
            layers = max(1, backbone.deep_texts(["thing"], templates, depth=ALL).depth // 4)
        self._deep = backbone.deep_texts(names, templates, depth=layers)
        self.frozen = self._deep.vectors()
        self.prompts = drawn(self._deep.depth, prompts, self._deep.width)
        self._kept: Tensor | None = None

    def forward(self) -> Tensor:
        """One vector a name, not of unit length, ``(c, d)``."""
        if self.prompts is None:
            return self.frozen
        if self.training or torch.is_grad_enabled():
            return self._deep.vectors(self.prompts)
        if self._kept is None:
            self._kept = self._deep.vectors(self.prompts)
        return self._kept

    def train(self, mode: bool = True) -> Self:
        """Learn, or be used; what was kept is forgotten."""
        self._kept = None
        return super().train(mode)

    def _load_from_state_dict(self, *given: Any) -> None:
        self._kept = None
        super()._load_from_state_dict(*given)


def drawn(layers: int, count: int, width: int) -> nn.Parameter | None:
    """Prompts of so many layers at random, ``(layers, count, width)``; None of none."""
    return nn.Parameter(SPREAD * torch.randn(layers, count, width)) if count else None
