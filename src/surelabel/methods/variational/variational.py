"""Score images and sentences with a similarity and its uncertainty, trained on captions."""

import math
from collections.abc import Sequence
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.arrays import LOGIT_LIMIT
from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.pair_scoring.pair_projection import PairProjection
from surelabel.methods.prompt_tuning.region_scores import whole_images_and_patches
from surelabel.methods.variational.all_pairs import folded_pair_outputs, pair_block_sizes
from surelabel.methods.variational.folded_heads import FoldedHeads, fold_posterior_heads
from surelabel.methods.variational.generalized_pooling import GeneralizedPooling
from surelabel.methods.variational.label_sentences import LabelSentences
from surelabel.methods.variational.noise_inflation import NoiseInflationCheck
from surelabel.methods.variational.pair_posterior import PairPosterior, SampledPairs
from surelabel.methods.variational.setting_ranges import (
    check_loss_weights,
    check_positive_settings,
    check_trained_blocks,
)
from surelabel.methods.variational.variance_losses import (
    matched_variance_losses,
    mean_over_known_pairs,
)
from surelabel.records import Features

POSTERIOR_RATE = 0.1  # learning rate relative to that of the projections
TEXT_TOWER_RATE, IMAGE_TOWER_RATE = 0.1, 0.01  # relative learning rates of trained blocks
MIN_PROBABILITY = 0.3  # a smaller mean of matching pairs after training causes a warning


class Variational(Method):
    """Score pairs of images and sentences from the posterior of a latent similarity vector.

        x, t   = unit(P · image), unit(Q · sentence)
        q(z)   = mixture of K normal distributions, computed from s_scale · x ⊙ t
        score  = w · mean of z + b
        u      = exp(weighted mean of log σ² over the dimensions and components)

    P and Q are learned matrices. In training, z is sampled. A low variance u indicates a reliable
    match; only pairs with a high score can be compared.

        loss = recon + alpha · KL + beta · (V_pos + gamma · V_neg)

    recon is the loss of the training recipe on the sampled scores, and KL is the upper bound of the
    divergence of q from N(0, I). V_pos is the variance loss of matching pairs, and V_neg is that of
    the hardest pairs that do not match. In both variance losses, the target is 1.

    Labels are scored like sentences.

    Args:
        encoder: Encoder of images and texts.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit.
        width: Width of the common space, >= 1. If None, the width of the image vectors is used.
        text_width: Width of precomputed text vectors. If None, the width of the encoder is used.
        hidden_width: Width of the hidden layer, >= 1. If None, the width of the common space is
            used.
        initial_scale: Factor of the cosine in the scores before training, > 0.
        initial_bias: Score of orthogonal vectors before training.
        components: Number of components of the mixture (K), >= 1.
        alpha: Weight of the divergence, >= 0. The divergence is a mean over the dimensions.
        beta: Weight of the variance losses, >= 0. If 0, only recon and KL remain in the loss.
        gamma: Weight of the hardest pairs in the variance losses, >= 0.
        hard_negatives: Number of hardest sentences of each image, and of hardest images of each
            sentence, >= 1.
        s_scale: Factor of the products of the elements, > 0.
        temperature: Temperature of the sampled choice of components, > 0.
        max_log_variance: Largest log variance in sampling and losses, in [-5, 10].
        detach_trunk: Whether the variance losses train only the log variances, and not the hidden
            layer. If True, noise inflation is less likely.
        bounded_variance: Whether the variance in the variance losses is σ² / (1 + σ²).
        generalized_pooling: Whether images and sentences are pooled with learned weights, from the
            vectors of the encoder and those of patches or tokens. If False, only the vectors of
            the encoder are used.
        trained_blocks: Number of last blocks of each tower that are trained, together with the
            final norms and the projections of the towers, >= 0. The lower blocks are run once. If
            blocks are trained, the encoder must have a plain ViT and a causal text tower, and the
            data must be images and captions, not vectors.
        templates: Prompt templates of the labels; see ``TextScorer``.

    Raises:
        ConfigError: If a setting is out of range, or the encoder has no blocks that can be trained.

    Source:
        VACSR: Variational Adapter for Cross-modal Similarity Representation, ICML 2026,
        arXiv:2605.30968.

    Differs:
        By default, the towers are frozen, and projections and latent similarity are trained. As in
        the paper, the learning rates of trained blocks relative to that of the projections are 0.1
        for texts and 0.01 for images. The paper trains all blocks, with a smaller learning rate for
        lower blocks, on images that are cropped at random. The paper multiplies all losses except
        KL by beta; with beta = 0, the similarity would then not be trained. The reconstruction is
        the binary cross-entropy, which has the gradient of the squared error with the
        straight-through sigmoid of the paper. The latent vector is decoded linearly, so the logit
        is sampled directly. The weights are initialized so that the scores are scaled cosines, and
        the latent similarity has a tenth of the learning rate of the projections. See
        ``variance_loss`` and ``hardest_negative_weights`` for the other differences.

        The paper trains for 25 epochs with 128 captions per batch on a larger dataset. On the
        captions of scenes-80 with `tiny-vit` (one seed, validation images), R@1 from image to text
        and from text to image is 40.8 and 27.8 with the recipe here, 36.8 and 27.1 with that of the
        paper, and 36.6 and 28.4 with zero-shot cosines. With random initial weights, it is 13.6 and
        15.8, and noise inflation is reported.
    """

    learns_from = "pairs"
    needs: tuple[str, ...] = ()
    open_vocabulary = True
    recipe = TrainingRecipe(
        optimizer="adamp",
        epochs=5,
        batch_size=32,
        learning_rate=0.0005,
        weight_decay=0.0001,
    )

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        width: int | None = None,
        text_width: int | None = None,
        hidden_width: int | None = None,
        initial_scale: float = 10.0,
        initial_bias: float = -10.0,
        components: int = 2,
        alpha: float = 0.0005,
        beta: float = 1.0,
        gamma: float = 1.0,
        hard_negatives: int = 1,
        s_scale: float = 1.0,
        temperature: float = 1.0,
        max_log_variance: float = 4.0,
        detach_trunk: bool = False,
        bounded_variance: bool = True,
        generalized_pooling: bool = False,
        trained_blocks: int = 0,
        templates: str | Sequence[str] = "one",
    ):
        super().__init__()
        check_loss_weights(alpha=alpha, beta=beta, gamma=gamma)
        if hard_negatives < 1:
            raise ConfigError(f"hard_negatives must be 1 or more; got {hard_negatives}.")
        check_positive_settings(temperature=temperature, initial_scale=initial_scale)
        if not math.isfinite(initial_bias):
            raise ConfigError(f"initial_bias must be finite; got {initial_bias}.")
        self.alpha, self.beta, self.gamma = alpha, beta, gamma
        self.hard_negatives, self.temperature = hard_negatives, temperature
        self.detach_trunk, self.bounded_variance = detach_trunk, bounded_variance
        check_trained_blocks(trained_blocks, encoder.width, text_width)
        self.towers = encoder.trainable_last_blocks(trained_blocks) if trained_blocks else None
        self.labels = LabelSentences(
            encoder,
            names,
            templates,
            text_width=text_width,
            with_tokens=generalized_pooling,
            trained_blocks=trained_blocks,
        )
        self.projection = PairProjection(encoder.width, text_width, width)
        self.pooling: nn.ModuleList | None = None
        if generalized_pooling:
            self.needs = ("patches",)
            self.pooling = nn.ModuleList(GeneralizedPooling() for _ in range(2))
        self.posterior = PairPosterior(
            self.projection.images.out_features,
            hidden_width=hidden_width,
            components=components,
            s_scale=s_scale,
            max_log_variance=max_log_variance,
        )
        self.posterior.start_with_cosines(scale=initial_scale, bias=initial_bias)
        self.learning_rate_scales = {"posterior": POSTERIOR_RATE}
        if self.towers is not None:
            self.needs = ("ladder",)  # contains the patches, too
            self.ladder_blocks = (self.towers.images.first_block, trained_blocks)
            self.learning_rate_scales |= {
                "towers.texts": TEXT_TOWER_RATE,
                "towers.images": IMAGE_TOWER_RATE,
            }
        self.noise_inflation = NoiseInflationCheck(min_probability=MIN_PROBABILITY)
        self._sample: SampledPairs | None = None
        self.to(encoder.device)

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of images with the labels."""
        labels = self.labels.mean_over_sentences(self.text_vectors(self.labels.features()))
        return self._pair_outputs(self.image_vectors(features), labels)[0]

    def image_vectors(self, images: Features) -> Tensor:
        """Return the projected unit vectors of images, ``(n, d)``."""
        if self.towers is not None:
            images = self.towers.images(images)
        return self._projected_vectors(images, self.projection.images, 0)

    def text_vectors(self, texts: Features) -> Tensor:
        """Return the projected unit vectors of sentences, ``(s, d)``."""
        if not len(texts.pooled):
            return texts.pooled.new_empty(0, self.projection.texts.out_features)
        if self.towers is not None:
            texts = self.towers.texts(texts)
        return self._projected_vectors(texts, self.projection.texts, 1)

    def folded_heads(self) -> FoldedHeads:
        """Return the network of the scores and log variances of projected vectors.

        The functions of ``all_pairs`` use this network for many images and sentences.
        """
        return fold_posterior_heads(self.posterior)

    def pair_scores(self, images: Features, texts: Features) -> Tensor:
        """Return the score of each image with each sentence without sampling, ``(n, s)``."""
        return self._pair_outputs(self.image_vectors(images), self.text_vectors(texts))[0]

    def pair_variances(self, images: Features, texts: Features) -> Tensor:
        """Return the latent variance u of each image with each sentence, above 0, ``(n, s)``."""
        outputs = self._pair_outputs(self.image_vectors(images), self.text_vectors(texts))
        return outputs[1].clamp(-LOGIT_LIMIT, LOGIT_LIMIT).exp()

    def training_pair_scores(self, images: Features, texts: Features) -> Tensor:
        """Return sampled scores of each image with each sentence, ``(n, s)``."""
        image_vectors, text_vectors = self.image_vectors(images), self.text_vectors(texts)
        self._sample = self.posterior.sample_pairs(
            image_vectors, text_vectors, temperature=self.temperature
        )
        return self._sample.logits

    def training_losses(self, targets: Tensor, known: Tensor) -> Tensor:
        """Return the weighted sum of divergence and variance losses of the last sample, a scalar.

        Args:
            targets: Targets in [0, 1] of n images and s sentences, ``(n, s)``.
            known: True where the target is known, ``(n, s)``.
        """
        assert self._sample is not None, "training_pair_scores computes the sample"
        sample, self._sample = self._sample, None  # frees the graph after the step
        self.noise_inflation.update(sample, known & (targets > 0.5))
        divergence = mean_over_known_pairs(sample.latent.divergence_bounds(), known)
        positive, negative = matched_variance_losses(
            sample,
            self._selected_log_variances,
            targets,
            known,
            hard_negatives=self.hard_negatives,
            bounded_variance=self.bounded_variance,
        )
        return self.alpha * divergence + self.beta * (positive + self.gamma * negative)

    def train(self, mode: bool = True) -> Self:
        """Set training or evaluation mode, and warn about noise inflation after training."""
        if self.training and not mode:
            self.noise_inflation.warn_if_inflated()
        return super().train(mode)

    def _selected_log_variances(self, hidden: Tensor) -> Tensor:
        return self.posterior.log_variances(hidden.detach() if self.detach_trunk else hidden)

    def _projected_vectors(self, features: Features, projection: nn.Linear, side: int) -> Tensor:
        if self.pooling is None:
            return F.normalize(projection(features.pooled), dim=-1)
        if features.patches is None:
            raise ConfigError(
                "generalized_pooling needs vectors of patches and tokens; got only vectors of "
                "images or sentences. Set method.generalized_pooling=false."
            )
        vectors, mask = whole_images_and_patches(features), features.patch_mask
        if mask is not None:
            mask = torch.cat([mask.new_ones(len(mask), 1), mask], dim=1)
        return F.normalize(self.pooling[side](projection(vectors), mask), dim=-1)

    @torch.no_grad()
    def _pair_outputs(self, image_vectors: Tensor, text_vectors: Tensor) -> Tensor:
        """Return score and mean log variance of all pairs of projected vectors, ``(2, n, s)``."""
        heads = self.folded_heads()
        chunk = pair_block_sizes(len(text_vectors), heads).chunk
        return folded_pair_outputs(heads, image_vectors, text_vectors, chunk=chunk)
