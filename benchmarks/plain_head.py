"""Define a head with the scores of `variational_tagger`, without variances and sampling."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.links import Link
from surelabel.methods.variational_tagger import POSTERIOR_RATE, VariationalTagger
from surelabel.records import Features

PLAIN_HIDDEN_WIDTH = 386  # same number of parameters as the tagger with 256 hidden units


class PlainHead(VariationalTagger):
    """Head with the scores of ``VariationalTagger``, without variances, divergence and sampling."""

    def __init__(self, encoder: Encoder, names: list[str]):
        super().__init__(encoder, names, hidden_width=PLAIN_HIDDEN_WIDTH, components=1)
        del self.posterior.log_variance_heads, self.match_head, self.residual_head
        self.learning_rate_scales = {"posterior": POSTERIOR_RATE}

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize the scores with calibrated cosines."""
        self.level.initialize(features.pooled @ self.texts.T, targets, known, link)
        scale, bias = float(self.level.log_slope.exp()), float(self.level.bias)
        self.posterior.start_with_cosines(scale=scale, bias=bias)

    def forward(self, features: Features) -> Tensor:
        """Return the scores, ``(n, c)``."""
        images, texts = self.projection(features.pooled, self.texts)
        self._cosines = images @ texts.T
        hidden = self.posterior.hidden(images, texts)
        scores: Tensor = self.posterior.decoder(self.posterior.mean_heads(hidden))
        return scores.squeeze(-1)

    def training_scores(self, features: Features, targets: Tensor, known: Tensor) -> Tensor:
        """Return the scores of the only head, ``(1, n, c)``."""
        return self(features)[None]

    def training_losses(self, targets: Tensor, known: Tensor) -> Tensor:
        """Return the weighted loss of the cosines, as in ``VariationalTagger``."""
        losses = F.binary_cross_entropy_with_logits(self.level(self._cosines), targets)
        return self.cosine_weight * losses

    def train(self, mode: bool = True) -> "PlainHead":
        """Set training or evaluation mode, without the check for noise inflation."""
        torch.nn.Module.train(self, mode)
        return self
