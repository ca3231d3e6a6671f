"""Score labels with CLIP-Adapter, a small residual network on frozen image vectors."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.links import Link
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.prompt_tuning.residual_adapter import ResidualAdapter
from surelabel.methods.text_scoring.scale_and_bias import initial_scale_and_bias
from surelabel.methods.zero_shot import ZeroShot
from surelabel.records import Features


class ClipAdapter(Method):
    """Blend the image vector with the output of a two-layer network, and compute zero-shot scores.

        x' = unit(ratio · relu(W2 relu(W1 x)) + (1 - ratio) · x)
        score = a · zero_shot(x') + b

    x is the image vector, x' the blended vector, and unit(v) is v divided by its length. W1 and W2
    are the weight matrices of the network, a is a learned scale, and b is a learned bias.

    Args:
        encoder: Encoder of images and texts.
        names: Labels. Other labels can be scored after the fit.
        ratio: Weight of the network output in the blend (alpha in the paper), in [0, 1].
        reduction: Width of the image vectors divided by the width of the hidden layer, >= 1.
        templates: Prompt templates; see ``TextScorer``.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        Gao et al., CLIP-Adapter: Better Vision-Language Models with Feature Adapters, IJCV 2024,
        arXiv:2110.04544 (visual adapter only).

    Differs:
        The paper computes a softmax over the labels; here each label has a separate score, because
        images have several labels. All labels share the scale a and the bias b. If the loss is
        proper, training a and b calibrates the scores. The text adapter of the paper is omitted.
    """

    learns_from = "labels"
    needs = ()
    open_vocabulary = True
    recipe = TrainingRecipe()

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        ratio: float = 0.5,
        reduction: int = 2,
        templates: str | Sequence[str] = "one",
    ):
        super().__init__()
        self.zero_shot = ZeroShot(encoder, names, templates=templates)
        self.network = ResidualAdapter(encoder.width, ratio=ratio, reduction=reduction)
        self.log_slope = nn.Parameter(torch.zeros(()))
        self.bias = nn.Parameter(torch.zeros(()))

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize scale a and bias b by Platt scaling of zero-shot scores without the adapter.

        See ``initial_scale_and_bias``.
        """
        slope, bias = initial_scale_and_bias(self.zero_shot(features), targets, known, link)
        self.log_slope.copy_(slope.log())
        self.bias.copy_(bias)

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of ``features.pooled`` ``(n, d)``."""
        scores = self.zero_shot(Features(self.network(features.pooled)))
        return self.log_slope.exp() * scores + self.bias
