"""The whole image network and a linear head, trained together."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.backbones import Backbone
from surelabel.errors import NotFitted
from surelabel.links import Link
from surelabel.methods.linear import Linear
from surelabel.methods.protocol import Recipe
from surelabel.records import Features


class FineTune(nn.Module):
    """A linear head on an image network that learns with it.

        score = w_c · (sqrt(d) · unit(network(pixels))) + b_c

    While it is fitted it owns a copy of the encoder's image network. ``tuned`` gives an encoder
    with the learnt weights, from whose vectors the head alone predicts, so that pictures are
    encoded once and cached as with any other encoder.

    Args:
        backbone: Whose image network is copied; open_clip towers and ``timm:NAME``.
        names: What to learn; each needs labelled pictures.

    Source:
        The training of Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks,
        CVPR 2024, section 5.1: stochastic gradient descent with momentum 0.9, weight decay
        0.0001, batches of 256.

    Differs:
        Before the whole is trained, the head is fitted as ``linear`` is, on vectors of the network
        as it is: Kumar et al., Fine-Tuning can Distort Pretrained Features and Underperform
        Out-of-Distribution, ICLR 2022, arXiv:2202.10054. Vectors are scaled to unit length before
        the head, as for ``linear``, so that the same head serves frozen and learnt vectors. No
        decay on levels and norms.

        The recipe is ours, tried on the validation pictures of scenes-80: four passes of AdamW.
        The paper's is ``optimizer.name=sgd``, ``batch=256``, ``weight_decay=0.0001``; it states
        no step size. Its loss is a sum over labels where ours is a mean, so the step must be
        about as many times larger as there are labels: with 80, 0.01 taught the head nothing in
        20 passes, and 1 did.
    """

    learns_from = "labels"
    needs: tuple[str, ...] = ("pixels",)
    side: int | None = None
    open_vocabulary = False
    recipe = Recipe(
        optimizer="adamw",
        epochs=4,
        batch=64,
        at_once=32,
        learning_rate=0.0003,
        weight_decay=0.05,
    )

    def __init__(self, backbone: Backbone, names: Sequence[str]):
        super().__init__()
        self.head = Linear(backbone, names)
        self.network: nn.Module | None = None
        self._backbone = backbone

    def start(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Copy the network, and let the levels begin as those of ``linear`` do."""
        self.network = self._backbone.network()
        self.head.start(features, targets, known, link)

    def forward(self, features: Features) -> Tensor:
        """Scores ``(n, c)`` of ``features.pixels``, or of ``pooled`` once the network is tuned."""
        if features.pixels is None:
            return self.head(features)  # type: ignore[no-any-return]
        if self.network is None:
            raise NotFitted("Pixels need start(…) first, which copies the network.")
        device = next(self.network.parameters()).device
        seen = self.network(features.pixels.to(device))
        pooled = F.normalize(seen.to(self.head.weight.device), dim=-1)
        return self.head(Features(pooled))  # type: ignore[no-any-return]

    def tuned(self) -> Backbone:
        """The encoder with what its network learnt; the network is given away with it."""
        network, self.network = self.network, None
        if network is None:
            raise NotFitted("There is no trained network to take; call start(…) and fit first.")
        self._backbone = self._backbone.with_network(network)
        return self._backbone
