"""A ladder beside the last blocks of a frozen ViT, where regions get their own meaning back."""

from typing import Literal

import torch
from torch import Tensor, nn

from surelabel.backbones import Backbone
from surelabel.errors import InputError
from surelabel.methods.local_adapter import LocalAdapter
from surelabel.methods.prompted_names import drawn
from surelabel.records import Features

Step = tuple[Tensor, Tensor]  # of a block: its self-aware attention, and the tokens after it


class LocalStream(nn.Module):
    """What regions look like when neither attention to the whole nor its tokens speak for them.

        x_local = sum over blocks of (self-aware attention + adapter(tokens after the block))

    Nothing flows back into the tower, so it need not be run again below, nor trained.

    Args:
        backbone: A ViT, which stays as it is.
        depth: Blocks with an adapter, the last ones.
        self_aware: Whether regions come of self-aware attention, or are the tower's last tokens.
        selection: Whether there are adapters.
        prompts: Learnt tokens in each of these blocks, which change the whole picture's vector.
        variant: Self-aware attention from block ``first`` of the features on, as in the released
            ``"code"``, or in the last ``depth`` blocks only, as in the ``"paper"``.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, section 4.2 (eq. 3
        to 5).

    Differs:
        Both begin with the tokens that enter the first block; here the sum begins with nothing.
        On 500 validation scenes the strongest patch of a label then lies in a box of it for 75.2 %
        (`tiny-vit`, frozen, sums from the first block on), with these tokens for 74.8 %, with
        those that enter the fourth block for 66.3 % (sums from there on; 73.7 % without them), and
        for the tower's own patches for 12.6 %; 11 % is chance. The paper takes the mean of both
        parts, the code their sum; with nothing else in the sum, the closing norm makes them equal.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        depth: int,
        self_aware: bool,
        selection: bool,
        prompts: int,
        variant: Literal["paper", "code"],
    ):
        super().__init__()
        self._upper = upper = backbone.upper(depth)
        self.self_aware, self.variant = self_aware, variant
        count = depth if selection else 0
        adapters = [
            LocalAdapter(upper.width, backbone.width, variant=variant) for _ in range(count)
        ]
        self.adapters = nn.ModuleList(adapters)
        self.prompts = drawn(depth, prompts, upper.width)

    def steps(self, features: Features) -> list[Step]:
        """Run the last blocks, with the prompts inside."""
        return list(self._upper.steps(self._entering(features), self.prompts))

    def whole(self, features: Features, steps: list[Step]) -> Tensor:
        """Vectors of whole pictures, ``(n, d)``, of any length."""
        return features.pooled if self.prompts is None else self._upper.pooled(steps[-1][1])

    def regions(self, features: Features, steps: list[Step], texts: Tensor) -> Tensor:
        """Vectors of regions, ``(n, p, d)``, of any length, with the names' ``(c, d)`` in mind."""
        assert features.grid is not None
        parts = self._self_aware(features, steps) if self.self_aware else [steps[-1][1][:, 1:]]
        if self.variant == "paper" and self.self_aware:
            parts = parts[1:]
        for adapter, (_, tokens) in zip(self.adapters, steps, strict=False):
            parts = [*parts, adapter(tokens[:, 1:], features.grid, texts)]
        return self._upper.joint(torch.stack(parts).sum(dim=0))

    @torch.no_grad()
    def frozen(self, features: Features, steps: list[Step]) -> Tensor:
        """The same of the encoder alone: self-aware attention, without adapters or prompts."""
        if self.prompts is not None:
            steps = list(self._upper.steps(self._entering(features)))
        return self._upper.joint(torch.stack(self._self_aware(features, steps)).sum(dim=0))

    def _self_aware(self, features: Features, steps: list[Step]) -> list[Tensor]:
        """What it adds below, then in each of the last blocks, each ``(n, p, w)``."""
        assert features.beside is not None
        return [features.beside, *(attended[:, 1:] for attended, _ in steps)]

    def _entering(self, features: Features) -> Tensor:
        layer = -self._upper.depth - 1
        layers = features.layers or {}
        if features.beside is None or features.grid is None or layer not in layers:
            raise InputError(
                "recover_match reads what enters the last blocks of a ViT, "
                f"features.layers[{layer}] and features.beside on a grid. Got features without "
                f"them; encode with part='ladder/FIRST/{self._upper.depth}'."
            )
        return layers[layer]
