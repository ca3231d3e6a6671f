"""Score images and texts with probabilistic embeddings, trained on images with captions."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.pair_scoring.pair_projection import PairProjection, encode_label_sentences
from surelabel.records import Features


class ProbabilisticEmbedding(Method):
    """Score pairs by the distance of normal distributions of the image and of the sentence.

        distance = |m_x - m_t|² + Σ_d (v_x + v_t)
        score    = -a · distance + b

    m_x and m_t are the projected unit vectors of the image and of the sentence. v_x and v_t are
    their variances per dimension, which two networks compute from the vectors of the encoder. a and
    b are learned.

    The additional losses are the Kullback-Leibler divergence of the distributions from N(0, I), and
    a cross-entropy in which pseudo-positives have the target 1. A pseudo-positive is a known pair
    whose score is at least the lowest score of the positive pairs of the image, that is, of the
    pairs with a target above 0.

    Labels are scored like sentences.

    Args:
        encoder: Encoder of images and texts.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit.
        width: Width of the common space, >= 1. If None, the width of the image vectors is used.
        text_width: Width of precomputed text vectors. If None, the width of the encoder is used.
        initial_scale: Initial value of a and of b, > 0.
        initial_variance: Initial sum of the variances of an image or a sentence, > 0.
        divergence_weight: Weight of the divergence, >= 0.
        pseudo_positive_weight: Weight of the loss with pseudo-positives, >= 0.
        templates: Prompt templates of the labels; see ``TextScorer``.

    Raises:
        ConfigError: If a setting is out of range, or the encoder cannot encode the labels as
            vectors of width ``text_width``.

    Source:
        Chun, Improved Probabilistic Image-Text Representations (PCME++), ICLR 2024,
        arXiv:2305.18171.

    Differs:
        The towers are frozen, and the variances are computed from the pooled vectors by a network
        with one hidden layer instead of a transformer block over the tokens. Mixed images, label
        smoothing and weight averaging of the paper are omitted.
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
        initial_scale: float = 5.0,
        initial_variance: float = 0.1,
        divergence_weight: float = 0.0001,
        pseudo_positive_weight: float = 0.1,
        templates: str | Sequence[str] = "one",
    ):
        super().__init__()
        for name, value, is_zero_valid in (
            ("initial_scale", initial_scale, False),
            ("initial_variance", initial_variance, False),
            ("divergence_weight", divergence_weight, True),
            ("pseudo_positive_weight", pseudo_positive_weight, True),
        ):
            if not (0 < value < math.inf or (is_zero_valid and value == 0)):
                bound = "0 or more" if is_zero_valid else "above 0"
                raise ConfigError(f"{name} must be {bound}, and finite; got {value}.")
        texts = encode_label_sentences(encoder, names, templates, text_width)
        self.register_buffer("texts", texts, persistent=False)
        self.projection = PairProjection(encoder.width, text_width, width)
        self.image_log_variance, self.text_log_variance = (
            _log_variance_network(layer, initial_variance)
            for layer in (self.projection.images, self.projection.texts)
        )
        self.log_scale = nn.Parameter(torch.tensor(math.log(initial_scale)))
        self.bias = nn.Parameter(torch.tensor(float(initial_scale)))
        self.divergence_weight = divergence_weight
        self.pseudo_positive_weight = pseudo_positive_weight
        self._latest_scores = self._latest_divergence = torch.zeros(())
        self.to(encoder.device)

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of ``features.pooled`` ``(n, d)`` with the labels."""
        return self.pair_scores(features, Features(self.texts))

    def pair_scores(self, images: Features, texts: Features) -> Tensor:
        """Return the score of each image with each sentence, ``(n, s)``."""
        image_means, text_means = self._means(images, texts)
        distances = 2 - 2 * image_means @ text_means.T + self._variance_sums(images, texts)
        return self.bias - self.log_scale.exp() * distances

    def training_pair_scores(self, images: Features, texts: Features) -> Tensor:
        """Return the scores of :meth:`pair_scores`, ``(n, s)``, and store the divergence.

        The scores and the divergence are the inputs of :meth:`training_losses`.
        """
        self._latest_scores = self.pair_scores(images, texts)
        means = self._means(images, texts)
        log_variances = self._log_variances(images, texts)
        divergences = [
            (log_variance.exp() + mean.square() - 1 - log_variance).mean() / 2
            for mean, log_variance in zip(means, log_variances, strict=True)
        ]
        self._latest_divergence = torch.stack(divergences).sum()
        return self._latest_scores

    def training_losses(self, targets: Tensor, known: Tensor) -> Tensor:
        """Return the weighted sum of the divergence and the loss with pseudo-positives, a scalar.

        Args:
            targets: Targets in [0, 1] of n images and s sentences, ``(n, s)``.
            known: True where the target is known, ``(n, s)``.
        """
        scores, divergence = self._latest_scores, self._latest_divergence
        self._latest_scores = self._latest_divergence = torch.zeros(())  # frees the graph
        is_positive = known & (targets > 0)
        lowest_positive = torch.where(is_positive, scores.detach(), torch.inf).amin(1, keepdim=True)
        targets = torch.where(scores.detach() >= lowest_positive, 1.0, targets)
        losses = F.binary_cross_entropy_with_logits(scores, targets, reduction="none")
        mean = (losses * known).sum() / known.sum().clamp(min=1)
        return self.divergence_weight * divergence + self.pseudo_positive_weight * mean

    @torch.no_grad()
    def pair_variances(self, images: Features, texts: Features) -> Tensor:
        """Return the variance of the image plus that of the sentence, for each pair, ``(n, s)``.

        Both variances are means over the dimensions.
        """
        return self._variance_sums(images, texts) / self.projection.images.out_features

    def _means(self, images: Features, texts: Features) -> tuple[Tensor, Tensor]:
        means: tuple[Tensor, Tensor] = self.projection(images.pooled, texts.pooled)
        return means

    def _log_variances(self, images: Features, texts: Features) -> tuple[Tensor, Tensor]:
        return self.image_log_variance(images.pooled), self.text_log_variance(texts.pooled)

    def _variance_sums(self, images: Features, texts: Features) -> Tensor:
        """Return the sum of the variances of image and sentence for each pair, ``(n, s)``."""
        of_images, of_texts = self._log_variances(images, texts)
        return of_images.exp().sum(1)[:, None] + of_texts.exp().sum(1)


def _log_variance_network(projection: nn.Linear, initial_variance: float) -> nn.Sequential:
    """Return a network that maps vectors to log variances, which are initially equal."""
    width = projection.out_features
    network = nn.Sequential(
        nn.Linear(projection.in_features, width), nn.ReLU(), nn.Linear(width, width)
    )
    last = network[-1]
    assert isinstance(last, nn.Linear)
    nn.init.zeros_(last.weight)
    nn.init.constant_(last.bias, math.log(initial_variance / width))
    return network
