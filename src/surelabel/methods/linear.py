"""A linear head on frozen image vectors."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surelabel.backbones import Backbone
from surelabel.links import Link
from surelabel.methods.protocol import Recipe
from surelabel.records import Features

STRETCH = 128.0  # of a vector's sum of absolute values, about


class Linear(nn.Module):
    """One weight vector and one level a name.

        score = w_c · (128 / sqrt(d) · x) + b_c

    Args:
        backbone: Gives the width of the vectors.
        names: What to learn; each needs labelled pictures.

    Source:
        Alain and Bengio, Understanding intermediate layers using linear classifier probes, 2016,
        arXiv:1610.01644, with one sigmoid a label in place of the softmax.

    Differs:
        The unit vector is stretched so that one step of Adam, which moves every weight about as
        far, moves the score about as far at every width. Without it a vector of 1,280 numbers is
        learnt by heart in the passes that one of 128 needs.
    """

    learns_from = "labels"
    needs: tuple[str, ...] = ()
    side: int | None = None
    open_vocabulary = False
    recipe = Recipe()

    def __init__(self, backbone: Backbone, names: Sequence[str]):
        super().__init__()
        self.scale = STRETCH / math.sqrt(backbone.width)
        self.weight = nn.Parameter(torch.zeros(len(names), backbone.width))
        self.level = nn.Parameter(torch.zeros(len(names)))

    @torch.no_grad()
    def start(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Let b begin where ``link`` gives how common each label is in ``targets`` ``(n, c)``."""
        present = (targets * known).sum(dim=0) + 0.5
        log_odds = (present / (known.sum(dim=0) + 0.5 - present + 0.5)).log()
        self.level.copy_(link.scores(log_odds))

    def forward(self, features: Features) -> Tensor:
        """Scores ``(n, c)`` of ``features.pooled`` ``(n, d)``."""
        return self.scale * features.pooled @ self.weight.T + self.level
