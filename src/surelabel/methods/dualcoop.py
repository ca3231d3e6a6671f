"""DualCoOp: a positive and a negative learned context, compared with the regions of an image."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.links import Link
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.prompt_tuning.learned_context import LearnedContext
from surelabel.methods.text_scoring.score_level import ScoreLevel
from surelabel.records import Features

IMAGES_PER_BATCH = 256  # images whose regions are compared with the labels together


class DualCoOp(Method):
    """Compare the regions of an image with two texts of each label, present and absent.

        w_rc = softmax over regions r of (spatial_scale · cos(x_r, t⁺_c))
        score = a · Σ_r w_rc · tau · (cos(x_r, t⁺_c) - cos(x_r, t⁻_c)) + b

    x_r are the patch vectors of self-aware attention and the vector of the whole image. t⁺_c and
    t⁻_c are the texts of label c with the positive and the negative context, tau is the scale of
    the encoder, a a learned scale and b a learned bias, which all labels share. A region that is
    similar to the positive text decides both similarities.

    Args:
        encoder: Encoder of images and texts with patch vectors.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit, unless the contexts are class-specific.
        initial_context: Words whose token embeddings initialize the positive context.
        initial_negative_context: Words whose token embeddings initialize the negative context.
        context_length: Number of vectors of each context that are initialized at random, >= 1. If
            None, the contexts are initialized by words.
        class_specific: Whether each label has its own contexts. Other labels then need another fit.
        spatial_scale: Inverse temperature, >= 0, of the softmax over regions.

    Raises:
        ConfigError: If a setting is out of range, the encoder has no text tower of open_clip or no
            patch vectors, or a context and a label are longer than the text tower allows.

    Source:
        Sun et al., DualCoOp: Fast Adaptation to Multi-Label Recognition with Limited Annotations,
        NeurIPS 2022, arXiv:2206.09541; the constants 20 and 5 of the code of the authors.

    Differs:
        The authors replace the last attention layer by its values, without attention, and train
        with the asymmetric loss. The scale 100 of their scores is fixed; here a is learned, and the
        bias b is added, so that the sigmoid of the score is a probability at the start. They
        initialize both contexts at random.
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
            raise ConfigError(f"spatial_scale must be 0 or more; got {spatial_scale}.")
        self.positive, self.negative = (
            LearnedContext(
                encoder, names, words=words, length=context_length, class_specific=class_specific
            )
            for words in (initial_context, initial_negative_context)
        )
        self.open_vocabulary = not class_specific
        self.scale, self.spatial_scale = encoder.scale, spatial_scale
        self.level = ScoreLevel()
        self.to(self.positive.vectors.device)

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize scale a and bias b by Platt scaling of the scores; see ``ScoreLevel``."""
        self.level.initialize(self._differences(features), targets, known, link)

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of patches ``(n, p, d)`` and whole images ``(n, d)``."""
        scores: Tensor = self.level(self._differences(features))
        return scores

    def _differences(self, features: Features) -> Tensor:
        """Return the differences of the similarities, without scale and bias, ``(n, c)``."""
        positive, negative = self.positive(), self.negative()
        batches = _whole_images_and_patches(features).split(IMAGES_PER_BATCH)
        return torch.cat([self._batch_differences(b, positive, negative) for b in batches])

    def _batch_differences(self, regions: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        present = regions @ positive.T
        weights = (self.spatial_scale * present).softmax(dim=1)
        return self.scale * (weights * (present - regions @ negative.T)).sum(dim=1)

    @torch.no_grad()
    def heat_maps(self, features: Features) -> Tensor:
        """Return the score of each patch, ``(n, c, down, across)``."""
        assert features.patches is not None
        assert features.grid is not None
        texts = self.positive() - self.negative()
        scores = self.level(self.scale * features.patches @ texts.T)
        maps: Tensor = scores.transpose(1, 2).unflatten(2, features.grid)
        return maps

    def tuned_texts(self) -> Tensor:
        """Return unit vectors of the labels with the positive context, ``(c, d)``.

        In training, the vectors are those of the last forward pass, with gradients.
        """
        return self.positive.latest()

    def encode_words(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return unit vectors of words, ``(k, d)``, with the positive context and without it.

        Raises:
            ConfigError: If the contexts are class-specific.
        """
        return self.positive.encode_words(words), self.positive.encode_frozen_words(words)


def _whole_images_and_patches(features: Features) -> Tensor:
    """Return the vectors of whole images and of their patches, ``(n, 1 + p, d)``."""
    assert features.patches is not None
    return torch.cat([features.pooled[:, None], features.patches], dim=1)
