"""A small residual network on frozen image vectors."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.backbones import Backbone
from surelabel.calibration import Platt
from surelabel.errors import ConfigError
from surelabel.links import Link
from surelabel.methods.protocol import Recipe
from surelabel.methods.zero_shot import ZeroShot
from surelabel.records import Features


class ClipAdapter(nn.Module):
    """Blend a picture's vector with a two-layer network of it, then compare as zero-shot does.

        x' = unit(ratio · relu(W2 relu(W1 x)) + (1 - ratio) · x)
        score = a · zero_shot(x') + b

    Args:
        backbone: Gives the texts and their scale.
        names: What to look for; others may be asked for later.
        ratio: Share of the network in the blend (alpha in the paper), in [0, 1].
        reduction: The hidden layer is this many times narrower than the vector.
        templates: As of ``zero_shot``.

    Source:
        Gao et al., CLIP-Adapter: Better Vision-Language Models with Feature Adapters, IJCV 2024,
        arXiv:2110.04544, the visual adapter.

    Differs:
        Many labels a picture, so the softmax is gone: a and b, shared by all names, turn the
        score into one that a proper loss can calibrate. No text adapter.
    """

    learns_from = "labels"
    needs: tuple[str, ...] = ()
    side: int | None = None
    open_vocabulary = True
    recipe = Recipe()

    def __init__(
        self,
        backbone: Backbone,
        names: Sequence[str],
        *,
        ratio: float = 0.5,
        reduction: int = 2,
        templates: str | Sequence[str] = "one",
    ):
        super().__init__()
        if not 0 <= ratio <= 1:
            raise ConfigError(f"ratio is a share in [0, 1]. Got {ratio}.")
        if reduction < 1:
            raise ConfigError(f"reduction must be 1 or more. Got {reduction}.")
        self.ratio = ratio
        self.zero_shot = ZeroShot(backbone, names, templates=templates)
        hidden = max(1, backbone.width // reduction)
        self.network = nn.Sequential(
            nn.Linear(backbone.width, hidden, bias=False),
            nn.ReLU(),
            nn.Linear(hidden, backbone.width, bias=False),
            nn.ReLU(),
        )
        self.log_slope = nn.Parameter(torch.zeros(()))
        self.level = nn.Parameter(torch.zeros(()))

    @torch.no_grad()
    def start(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Let a and b begin where ``link`` makes log-odds of the zero-shot scores.

        From a = 1 and b = 0 the first steps would bend the network to mend the level. Where the
        link is no straight line, a and b are those of the line that comes nearest to it.
        """
        scores = self.zero_shot(features)
        found = Platt().fit(scores.numpy(), targets.numpy(), known.numpy())
        wanted = link.scores(found.slope_ * scores + found.shift_)
        centred = scores - scores.mean()
        slope = (centred * wanted).sum() / centred.square().sum().clamp(min=1e-12)
        self.log_slope.copy_(slope.clamp(min=1e-6).log())
        self.level.copy_(wanted.mean() - self.log_slope.exp() * scores.mean())

    def forward(self, features: Features) -> Tensor:
        """Scores ``(n, c)`` of ``features.pooled`` ``(n, d)``."""
        pooled = features.pooled
        mixed = self.ratio * self.network(pooled) + (1 - self.ratio) * pooled
        scores: Tensor = self.zero_shot(Features(F.normalize(mixed, dim=-1)))
        return self.log_slope.exp() * scores + self.level
