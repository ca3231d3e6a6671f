"""A linear head on frozen image vectors."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surelabel.backbones import Backbone
from surelabel.records import Features


class Linear(nn.Module):
    """One weight vector and one level a name.

        score = w_c · (sqrt(d) · x) + b_c

    Args:
        backbone: Gives the width of the vectors.
        names: What to learn; each needs labelled pictures.

    Source:
        Alain and Bengio, Understanding intermediate layers using linear classifier probes, 2016,
        arXiv:1610.01644, with one sigmoid a label in place of the softmax.

    Differs:
        The unit vector is scaled so that its entries are about 1, which lets one step size serve
        every width.
    """

    learns_from = "labels"
    needs: tuple[str, ...] = ()
    open_vocabulary = False

    def __init__(self, backbone: Backbone, names: Sequence[str]):
        super().__init__()
        self.scale = math.sqrt(backbone.width)
        self.weight = nn.Parameter(torch.zeros(len(names), backbone.width))
        self.level = nn.Parameter(torch.zeros(len(names)))

    @torch.no_grad()
    def start(self, features: Features, targets: Tensor, known: Tensor) -> None:
        """Let b begin at the log-odds of how common each label is in ``targets`` ``(n, c)``."""
        present = (targets * known).sum(dim=0) + 0.5
        self.level.copy_((present / (known.sum(dim=0) + 0.5 - present + 0.5)).log())

    def forward(self, features: Features) -> Tensor:
        """Scores ``(n, c)`` of ``features.pooled`` ``(n, d)``."""
        return self.scale * features.pooled @ self.weight.T + self.level
