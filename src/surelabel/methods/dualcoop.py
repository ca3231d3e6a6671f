"""Score labels with DualCoOp, which compares image regions with two learned contexts."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.links import Link
from surelabel.methods.inference_batches.inference_batches import inference_batches
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.prompt_tuning.learned_context import LearnedContext
from surelabel.methods.prompt_tuning.region_scores import (
    pool_region_scores,
    region_score_maps,
    softmax_region_weights,
    whole_images_and_patches,
)
from surelabel.methods.text_scoring.scale_and_bias import ScaleAndBias
from surelabel.methods.text_scoring.text_scorer import TextScorer
from surelabel.records import Features

IMAGES_PER_BATCH = 64  # images whose regions are compared with the labels together


class DualCoOp(Method):
    """Compare an image and its regions with a positive and a negative text of each label.

        s⁺_r = tau · cos(x_r, t⁺_c) - log mean_q exp(tau · cos(x_r, t_q)),  s⁻_r with t⁻_c
        w_r  = softmax over regions r of (spatial_scale · cos(x_r, t⁺_c))
        score = a · ((s⁺_image + Σ_r w_r · s⁺_r) / 2 - g · Σ_r w_r · s⁻_r) + b

    x_r are the vector of the whole image and the patch vectors of self-aware attention. t⁺_c and
    t⁻_c are the texts of label c with the positive and the negative context. tau is the scale of
    the encoder, and t_q are the frozen texts of the reference list, as in ``zero_shot``. a is a
    learned scale, b a learned bias and g the learned weight of the negative texts, which all labels
    share. g is initialized to 0. In both sums, regions that are similar to the positive text have
    the largest weights.

    Args:
        encoder: Encoder of images and texts with patch vectors.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit, unless the contexts are class-specific.
        initial_context: Words whose token embeddings initialize the positive context.
        initial_negative_context: Words whose token embeddings initialize the negative context.
        context_length: Number of vectors of each context that are initialized at random, >= 1. If
            None, the contexts are initialized by words; a context without words has 16 vectors.
        class_specific: Whether each label has its own contexts. Other labels then need another fit.
        spatial_scale: Inverse temperature, >= 0, of the softmax over regions.

    Raises:
        ConfigError: If a setting is out of range, or if the encoder has no text tower of open_clip
            or no patch vectors. Also if a context and a label together are longer than the text
            tower allows.

    Source:
        Sun et al., DualCoOp: Fast Adaptation to Multi-Label Recognition with Limited Annotations,
        NeurIPS 2022, arXiv:2206.09541. The constants 20 and 5 are those of the authors' code.

    Differs:
        The score of the paper is the difference of both similarities, Σ_r w_r · 100 · (cos(x_r,
        t⁺_c) - cos(x_r, t⁻_c)), with random contexts. Here the positive texts are compared with the
        reference list, the whole image has half the weight, and the negative texts have the weight
        g. Training therefore starts with a higher mAP than that of zero-shot scores. On the
        validation images of scenes-80 with `tiny-vit`, zero-shot scores have an mAP of 53.4 for the
        first 40 labels and of 49.3 for the others. The scores above have 55.0 and 51.2 before
        training, and the difference of the paper with "a photo of a" and "a photo without a" has
        9.7 and 5.9. Fits have 10 epochs on the first 40 labels with 16 images each (mean of two
        seeds). After these fits, the scores above have 55.4 and 51.1, and the difference has 42.8
        and 34.4. With a ``spatial_scale`` of 50, the difference has 34.8 and 27.4; with 100, it has
        31.8 and 25.0.

        The authors replace the last attention layer by its values, without attention, and train
        with the asymmetric loss.
    """

    learns_from = "labels"
    needs = ("self_aware",)
    open_vocabulary = True
    recipe = TrainingRecipe(
        epochs=20, batch_size=32, learning_rate=0.002, weight_decay=0.0005, warm_up=0.05
    )

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        initial_context: str = "a photo of a",
        initial_negative_context: str = "a photo without a",
        context_length: int | None = None,
        class_specific: bool = False,
        spatial_scale: float = 20.0,
    ):
        super().__init__()
        if not 0 <= spatial_scale < math.inf:
            raise ConfigError(f"spatial_scale must be 0 or more, and finite; got {spatial_scale}.")
        self.text_scorer = TextScorer(encoder, names)
        self.positive, self.negative = (
            LearnedContext(
                encoder, names, words=words, length=context_length, class_specific=class_specific
            )
            for words in (initial_context, initial_negative_context)
        )
        self.negative_weight = nn.Parameter(torch.zeros(()))
        self.open_vocabulary = not class_specific
        self.spatial_scale = spatial_scale
        self.level = ScaleAndBias()
        self.to(self.text_scorer.texts.device)

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize scale a and bias b by Platt scaling of the scores; see ``ScaleAndBias``."""
        self.level.initialize(self._pooled_scores(features), targets, known, link)

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of patches ``(n, p, d)`` and whole images ``(n, d)``."""
        scores: Tensor = self.level(self._pooled_scores(features))
        return scores

    def _pooled_scores(self, features: Features) -> Tensor:
        """Return the scores of images without scale and bias, ``(n, c)``."""
        positive, negative = self.positive(), self.negative()
        batches = inference_batches(whole_images_and_patches(features), IMAGES_PER_BATCH)
        scores = [
            self._weighted_scores(batch, self._region_weights(batch, positive), positive, negative)
            for batch in batches
        ]
        return torch.cat(scores)

    def _region_weights(self, regions: Tensor, positive: Tensor) -> Tensor:
        """Return the weight of each region for each label, ``(n, 1 + p, c)``."""
        return softmax_region_weights(regions, positive, scale=self.spatial_scale)

    def _weighted_scores(
        self, regions: Tensor, weights: Tensor, positive: Tensor, negative: Tensor
    ) -> Tensor:
        """Return the scores of images without scale and bias, ``(n, c)``, with given weights."""
        present = self.text_scorer(regions, positive)
        absent = self.text_scorer(regions, negative)
        local_present, local_absent = (pool_region_scores(s, weights) for s in (present, absent))
        scores: Tensor = (present[:, 0] + local_present) / 2 - self.negative_weight * local_absent
        return scores

    @torch.no_grad()
    def heat_maps(self, features: Features) -> Tensor:
        """Return the score of each label at each patch, ``(n, c, down, across)``."""
        assert features.patches is not None
        present = self.text_scorer(features.patches, self.positive())
        absent = self.text_scorer(features.patches, self.negative())
        scores = self.level(present - self.negative_weight * absent)
        return region_score_maps(scores, features.grid)

    def tuned_texts(self) -> Tensor:
        """Return unit vectors of the labels with the positive context, ``(c, d)``.

        In training, the vectors are those of the last forward pass, with gradients.
        """
        return self.positive.latest()

    def encode_words(self, words: Sequence[str]) -> Tensor:
        """Return unit vectors of words, ``(k, d)``, with the positive context.

        Raises:
            ConfigError: If the contexts are class-specific, or the context and a word are longer
                than the text tower allows.
        """
        return self.positive.encode_words(words)
