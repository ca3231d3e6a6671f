"""Train a linear probe, that is, a linear head on frozen image vectors."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.links import Link
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.records import Features

INPUT_SCALE = 128.0  # largest sum of absolute values of a scaled unit vector
PENALTY_FOLDS = 5
ROWS_PER_BLOCK = 4096  # rows that are converted to double precision at once


class Linear(Method):
    """Compute one linear score per label, from a weight vector and a bias.

        score = w_c · (128 / sqrt(d) · (x - m)) + b_c

    x is the image vector of width d, m is the mean of the training vectors, and w_c and b_c are the
    weight vector and the bias of label c.

    If ``penalty_folds`` is above 0, the heads are fitted to convergence without the training loop.
    The fit minimizes the sum of the losses over the known targets of label c, plus the penalty term
    p_c / 2 · |128 / sqrt(d) · w_c|². The penalty p_c is 1 / C of logistic regression in
    scikit-learn, and is chosen by the loss of label c on held-out folds. If ``penalty_folds`` is 0,
    the heads are trained by the training loop.

    Args:
        encoder: Encoder of the images; the weight vectors have the width ``encoder.width``.
        names: Labels. Each label needs annotated images.
        centred: Whether the mean of the training vectors is subtracted from image vectors. If
            False, m is 0.
        penalty_folds: Number of folds by which the penalty of each label is chosen, >= 2. If 0, the
            training loop is used. The default is 5. If the run has a regularizer, a loss of
            ``SET_LOSSES``, or a training setting such as ``epochs`` or ``weight_decay``, the
            default is 0. If a value above 0 is set, training settings have no effect.

    Raises:
        ConfigError: If ``penalty_folds`` is negative or 1.

    Source:
        Alain and Bengio, Understanding intermediate layers using linear classifier probes, 2016,
        arXiv:1610.01644, with one sigmoid per label instead of the softmax.

    Differs:
        The image vector, which is a unit vector, is multiplied by 128 / sqrt(d). A step of Adam
        changes every weight by about the same amount. With the factor, the resulting change of the
        score hardly depends on d. Without the factor, the number of epochs that width 128 requires
        causes overfitting at width 1,280.

        The mean of the training vectors is subtracted, because the vectors of many encoders have a
        large common part. Recognizers of earlier versions subtract no mean.
    """

    learns_from = "labels"
    needs = ()
    open_vocabulary = False
    recipe = TrainingRecipe()

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        centred: bool = True,
        penalty_folds: int = PENALTY_FOLDS,
    ):
        super().__init__()
        if penalty_folds < 0 or penalty_folds == 1:
            raise ConfigError(
                f"penalty_folds must be 0 or at least 2; got {penalty_folds}. Use 0 for the "
                "training loop."
            )
        self.penalty_folds = penalty_folds
        self.scale = INPUT_SCALE / math.sqrt(encoder.width)
        self.weight = nn.Parameter(torch.zeros(len(names), encoder.width))
        self.bias = nn.Parameter(torch.zeros(len(names)))
        self.mean: Tensor | None
        self.penalties: Tensor | None
        self.register_buffer("mean", torch.zeros(encoder.width) if centred else None)
        self.register_buffer("penalties", torch.zeros(len(names)) if penalty_folds else None)

    @classmethod
    def settings_in_run(cls, *, uses_training_loop: bool) -> dict[str, Any]:
        """Return the settings that a run states explicitly, even if they are the defaults."""
        return {"centred": True, "penalty_folds": 0 if uses_training_loop else PENALTY_FOLDS}

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Set the mean of the vectors, and each bias to the score of the label's prevalence.

        The prevalence is smoothed by half a positive and half a negative target. ``link`` converts
        its log-odds to a score. If ``centred`` is False, the mean is not set.
        """
        if self.mean is not None:
            blocks = features.pooled.split(ROWS_PER_BLOCK)
            self.mean.copy_(
                sum(block.double().sum(dim=0) for block in blocks) / len(features.pooled)
            )
        n_positives = (targets * known).sum(dim=0) + 0.5
        log_odds = (n_positives / (known.sum(dim=0) + 0.5 - n_positives + 0.5)).log()
        self.bias.copy_(link.scores(log_odds))

    @torch.no_grad()
    def set_heads(self, weights: Tensor, biases: Tensor, penalties: Tensor) -> None:
        """Set the heads of the c labels, which were fitted on centred vectors.

        Args:
            weights: Weight vectors for the output of ``centred_vectors``, ``(c, d)``.
            biases: Biases, ``(c,)``.
            penalties: Penalty of each label, ``(c,)``, above 0.
        """
        assert self.penalties is not None
        self.weight.copy_(weights / self.scale)
        self.bias.copy_(biases)
        self.penalties.copy_(penalties)

    def centred_vectors(self, features: Features) -> Tensor:
        """Return the image vectors minus the mean of the training vectors, ``(n, d)``."""
        return features.pooled if self.mean is None else features.pooled - self.mean

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of ``features.pooled`` ``(n, d)``."""
        return self.scale * self.centred_vectors(features) @ self.weight.T + self.bias
