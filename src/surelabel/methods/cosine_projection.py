"""Score images and texts by the cosine of their projected vectors, trained on captions."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.pair_scoring.pair_projection import PairProjection, encode_label_sentences
from surelabel.records import Features


class CosineProjection(Method):
    """Score pairs of images and sentences by the scaled cosine of their projected vectors.

        score = a · cos(P x, Q t) + b

    x is the image vector, and t is the vector of the sentence. P and Q are learned matrices, a is
    the learned scale, and b is the learned bias. Training with ``loss.name=binary`` minimizes the
    sigmoid loss of SigLIP. Training with ``loss.name=contrastive`` minimizes the contrastive loss
    of CLIP, which does not train b.

    Labels are scored like sentences.

    Args:
        encoder: Encoder of images and texts.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit.
        width: Width of the common space, >= 1. If None, the width of the image vectors is used.
        text_width: Width of precomputed text vectors. If None, the width of the encoder is used.
        initial_scale: Initial value of a, > 0.
        initial_bias: Initial value of b.
        train_scale: Whether a and b are trained; otherwise, they keep their initial values.
        templates: Prompt templates of the labels; see ``TextScorer``.

    Raises:
        ConfigError: If a setting is out of range, or the encoder cannot encode the labels as
            vectors of width ``text_width``.

    Source:
        Zhai et al., Sigmoid Loss for Language Image Pre-Training, ICCV 2023, arXiv:2303.15343, and
        Radford et al., Learning Transferable Visual Models From Natural Language Supervision,
        ICML 2021, arXiv:2103.00020.

    Differs:
        The towers of the encoder are frozen, and only P, Q, a and b are trained. If all widths are
        equal, training starts from the cosines of the encoder. The sigmoid loss is the
        mean over all pairs of a batch; the paper divides by the number of images.
    """

    learns_from = "pairs"
    needs = ()
    open_vocabulary = True
    recipe = TrainingRecipe(epochs=25, batch_size=128, learning_rate=0.0005, weight_decay=0.0001)

    texts: Tensor

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        width: int | None = None,
        text_width: int | None = None,
        initial_scale: float = 10.0,
        initial_bias: float = -10.0,
        train_scale: bool = True,
        templates: str | Sequence[str] = "one",
    ):
        super().__init__()
        if not 0 < initial_scale < math.inf:
            raise ConfigError(f"initial_scale must be above 0, and finite; got {initial_scale}.")
        if not math.isfinite(initial_bias):
            raise ConfigError(f"initial_bias must be finite; got {initial_bias}.")
        texts = encode_label_sentences(encoder, names, templates, text_width)
        self.register_buffer("texts", texts, persistent=False)
        self.projection = PairProjection(encoder.width, text_width, width)
        self.log_scale = nn.Parameter(torch.tensor(math.log(initial_scale)), train_scale)
        self.bias = nn.Parameter(torch.tensor(float(initial_bias)), train_scale)
        self.to(encoder.device)

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of ``features.pooled`` ``(n, d)`` with the labels."""
        return self.pair_scores(features, Features(self.texts))

    def pair_scores(self, images: Features, texts: Features) -> Tensor:
        """Return the score of each image with each sentence, ``(n, s)``."""
        projected_images, projected_texts = self.projection(images.pooled, texts.pooled)
        scores: Tensor = self.log_scale.exp() * projected_images @ projected_texts.T + self.bias
        return scores

    def training_pair_scores(self, images: Features, texts: Features) -> Tensor:
        """Return the scores of :meth:`pair_scores`, ``(n, s)``; no score is sampled."""
        return self.pair_scores(images, texts)
