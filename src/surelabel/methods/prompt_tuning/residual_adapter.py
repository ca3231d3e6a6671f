"""Blend vectors with the output of a two-layer network."""

import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.errors import ConfigError


class ResidualAdapter(nn.Sequential):
    """Blend unit vectors with the output of a network: ``relu(W2 relu(W1 x))``.

    Args:
        width: Width of the vectors.
        ratio: Weight of the network output in the blend, in [0, 1].
        reduction: Width of the vectors divided by the width of the hidden layer, >= 1.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        Gao et al., CLIP-Adapter: Better Vision-Language Models with Feature Adapters, IJCV 2024,
        arXiv:2110.04544.
    """

    def __init__(self, width: int, *, ratio: float, reduction: int):
        if not 0 <= ratio <= 1:
            raise ConfigError(f"ratio must be in [0, 1]; got {ratio}.")
        if reduction < 1:
            raise ConfigError(f"reduction must be 1 or more; got {reduction}.")
        hidden = max(1, width // reduction)
        super().__init__(
            nn.Linear(width, hidden, bias=False),
            nn.ReLU(),
            nn.Linear(hidden, width, bias=False),
            nn.ReLU(),
        )
        self.ratio = ratio

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the blended unit vectors ``(…, d)`` of unit vectors ``(…, d)``."""
        output = vectors
        for layer in self:
            output = layer(output)
        return F.normalize(self.ratio * output + (1 - self.ratio) * vectors, dim=-1)
