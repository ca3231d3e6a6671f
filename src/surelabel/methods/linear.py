"""Linear probe: a linear head on frozen image vectors."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.links import Link
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.records import Features

INPUT_SCALE = 128.0  # approximate sum of absolute values of a scaled input vector


class Linear(Method):
    """Compute one linear score per label, from a weight vector and a bias.

        score = w_c · (128 / sqrt(d) · x) + b_c

    x is the image vector of width d, and w_c and b_c are the weight vector and the bias of label c.

    Args:
        encoder: Encoder of the images; the weight vectors have the width ``encoder.width``.
        names: Labels. Each label needs annotated images.

    Source:
        Alain and Bengio, Understanding intermediate layers using linear classifier probes, 2016,
        arXiv:1610.01644, with one sigmoid per label instead of the softmax.

    Differs:
        The image vector, which is a unit vector, is multiplied by 128 / sqrt(d). A step of Adam
        changes every weight by about the same amount. With the factor, the resulting change of the
        score hardly depends on d. Without the factor, the number of epochs that width 128 requires
        causes overfitting at width 1,280.
    """

    learns_from = "labels"
    needs = ()
    open_vocabulary = False
    recipe = TrainingRecipe()

    def __init__(self, encoder: Encoder, names: Sequence[str]):
        super().__init__()
        self.scale = INPUT_SCALE / math.sqrt(encoder.width)
        self.weight = nn.Parameter(torch.zeros(len(names), encoder.width))
        self.bias = nn.Parameter(torch.zeros(len(names)))

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Set each bias to the log-odds of the label's prevalence, converted by ``link``."""
        n_positives = (targets * known).sum(dim=0) + 0.5
        log_odds = (n_positives / (known.sum(dim=0) + 0.5 - n_positives + 0.5)).log()
        self.bias.copy_(link.scores(log_odds))

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of ``features.pooled`` ``(n, d)``."""
        return self.scale * features.pooled @ self.weight.T + self.bias
