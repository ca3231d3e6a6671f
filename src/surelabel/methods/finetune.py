"""Fine-tune the image network together with a linear head."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.errors import NotFitted
from surelabel.links import Link
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.linear import Linear
from surelabel.records import Features


class FineTune(Method):
    """Train a copy of the encoder's image network together with a linear head.

        score = w_c · (128 / sqrt(d) · unit(network(pixels))) + b_c

    w_c and b_c are the weight vector and the bias of label c, d is the width of the image vectors,
    and unit(v) is v divided by its length.

    After training, ``finetuned_encoder`` returns an encoder with the trained weights. The head
    computes scores from the image vectors of this encoder, which are cached like those of any other
    encoder.

    Args:
        encoder: Encoder whose image network is copied: an open_clip tower or ``timm:NAME``.
        names: Labels. Each label needs annotated images.

    Source:
        Training procedure of Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural
        Networks, CVPR 2024, section 5.1: stochastic gradient descent with momentum 0.9, weight
        decay 0.0001, batches of 256.

    Differs:
        Before the network is trained, the head is fitted on the vectors of the unchanged network by
        the training loop, as in the method ``linear`` without penalty folds. No mean is subtracted,
        because training changes the mean; see Kumar et al., Fine-Tuning can Distort Pretrained
        Features and Underperform Out-of-Distribution, ICLR 2022, arXiv:2202.10054. Image vectors
        are normalized, as for ``linear``, so that one head can score both frozen and fine-tuned
        vectors. Biases and normalization layers have no weight decay.

        The default recipe, four epochs with AdamW, was chosen on the validation images of
        scenes-80. The recipe of the paper is ``optimizer.name=sgd``, ``batch_size=256``,
        ``weight_decay=0.0001``; the paper does not state the learning rate. The loss of the paper
        is a sum over labels, but here the loss is a mean. The learning rate of SGD must therefore
        be larger, by a factor of about the number of labels. With 80 labels, 20 epochs of SGD did
        not improve the head at a learning rate of 0.01, but did at a learning rate of 1.
    """

    learns_from = "labels"
    needs = ("pixels",)
    open_vocabulary = False
    recipe = TrainingRecipe(
        optimizer="adamw",
        epochs=4,
        batch_size=64,
        micro_batch_size=32,
        learning_rate=0.0003,
        weight_decay=0.05,
    )

    def __init__(self, encoder: Encoder, names: Sequence[str]):
        super().__init__()
        self.head = Linear(encoder, names, centred=False, penalty_folds=0)
        self.network: nn.Module | None = None
        self._encoder = encoder

    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Copy the image network, and initialize the biases of the head as in ``linear``."""
        self.network = self._encoder.trainable_network()
        self.head.initialize(features, targets, known, link)

    def forward(self, features: Features) -> Tensor:
        """Return scores ``(n, c)`` of pixels, or of ``features.pooled`` if there are no pixels.

        Raises:
            NotFitted: If there are pixels and ``initialize`` was not called before.
        """
        if features.pixels is None:
            return self.head(features)
        if self.network is None:
            raise NotFitted(
                "FineTune needs an image network to encode pixels; call initialize(…) first."
            )
        device = next(self.network.parameters()).device
        vectors = self.network(features.pixels.to(device))
        pooled = F.normalize(vectors.to(self.head.weight.device), dim=-1)
        return self.head(Features(pooled))

    def frozen_feature_head(self) -> Linear:
        """Return the head, which is first fitted on vectors of the unchanged network."""
        return self.head

    def finetuned_encoder(self) -> Encoder:
        """Return the encoder with the trained network, and remove the network from this module.

        Raises:
            NotFitted: If there is no trained network.
        """
        network, self.network = self.network, None
        if network is None:
            raise NotFitted(
                "There is no trained network; call initialize(…) and train the module first."
            )
        self._encoder = self._encoder.with_network(network)
        return self._encoder
