"""TaI-DPT: a global and a local learned context, trained on sentences in place of images."""

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
from surelabel.methods.text_scoring.text_scorer import TextScorer
from surelabel.records import Features

IMAGES_PER_BATCH = 64  # images whose patches are compared with the texts together


class TaI(Method):
    """Compare an image and its patches with texts whose contexts were learned from sentences.

        global = tau · cos(x, t_c) - log mean_r exp(tau · cos(x, t_r))
        local  = Σ_p w_pc · (tau · cos(x_p, s_c) - log mean_r exp(tau · cos(x_p, t_r)))
        w_pc   = softmax over patches p of (spatial_scale · cos(x_p, s_c))
        score  = a · (global + local) / 2 + b

    x is the image vector, and x_p are the patch vectors of self-aware attention. t_c and s_c are
    the texts of label c with the global and the local context, t_r those of the reference list, as
    in ``zero_shot``, and tau is the scale of the encoder.

    No image is used in training: x is the vector of a sentence, and x_p are those of its tokens,
    with ``token_scale`` in place of ``spatial_scale``. The sentences are captions with the labels
    that they mention, and sentences of prompt templates.

    Args:
        encoder: Encoder of images and texts with patch vectors.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit.
        initial_context: Words whose token embeddings initialize both contexts.
        context_length: Number of vectors of each context that are initialized at random, >= 1. If
            None, the contexts are initialized by ``initial_context``.
        token_scale: Inverse temperature, >= 0, of the softmax over the tokens of a sentence.
        spatial_scale: Inverse temperature, >= 0, of the softmax over the patches of an image.

    Raises:
        ConfigError: If a setting is out of range, the encoder has no text tower of open_clip or no
            patch vectors, or a context and a label are longer than the text tower allows.

    Source:
        Guo et al., Texts as Images in Prompt Tuning for Multi-Label Image Recognition, CVPR 2023,
        arXiv:2211.12739, and the constants of the code of the authors.

    Differs:
        To be measured.
    """

    learns_from = "texts"
    needs = ("self_aware",)
    open_vocabulary = True
    recipe = TrainingRecipe(
        epochs=20, batch_size=512, learning_rate=0.002, weight_decay=0.0005, warm_up=0.05
    )

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        initial_context: str = "a photo of a",
        context_length: int | None = None,
        token_scale: float = 50.0,
        spatial_scale: float = 40.0,
    ):
        super().__init__()
        for setting, value in (("token_scale", token_scale), ("spatial_scale", spatial_scale)):
            if not 0 <= value < math.inf:
                raise ConfigError(f"{setting} must be 0 or more; got {value}.")
        self.text_scorer = TextScorer(encoder, names)
        self.global_context, self.local_context = (
            LearnedContext(encoder, names, words=initial_context, length=context_length)
            for _ in range(2)
        )
        self.token_scale, self.spatial_scale = token_scale, spatial_scale
        self.level = ScoreLevel()
        self.to(self.text_scorer.texts.device)

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize scale a and bias b by Platt scaling of the scores; see ``ScoreLevel``."""
        scores = self._global_and_local(features, self.token_scale)
        self.level.initialize(scores.mean(dim=0), targets, known, link)

    def training_scores(self, features: Features, targets: Tensor, known: Tensor) -> Tensor:
        """Return the global and the local scores of n sentences, ``(2, n, c)``.

        Args:
            features: Features of the sentences, with the tokens as patches.
            targets: Targets in [0, 1], ``(n, c)``, for c labels.
            known: True where the target is known, ``(n, c)``.
        """
        scores: Tensor = self.level(self._global_and_local(features, self.token_scale))
        return scores

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of patches ``(n, p, d)`` and whole images ``(n, d)``."""
        assert features.patches is not None
        batches = zip(
            features.pooled.split(IMAGES_PER_BATCH),
            features.patches.split(IMAGES_PER_BATCH),
            strict=True,
        )
        scores = [
            self._global_and_local(Features(pooled, patches=patches), self.spatial_scale)
            for pooled, patches in batches
        ]
        mean: Tensor = self.level(torch.cat(scores, dim=1).mean(dim=0))
        return mean

    def _global_and_local(self, features: Features, scale: float) -> Tensor:
        """Return global and local scores without scale and bias, ``(2, n, c)``."""
        assert features.patches is not None
        texts = self.local_context()
        weights = scale * features.patches @ texts.T
        if features.patch_mask is not None:
            weights = weights.masked_fill(~features.patch_mask[..., None], -torch.inf)
        parts = self.text_scorer(features.patches, texts)
        return torch.stack(
            [
                self.text_scorer(features.pooled, self.global_context()),
                (weights.softmax(dim=1) * parts).sum(dim=1),
            ]
        )

    @torch.no_grad()
    def heat_maps(self, features: Features) -> Tensor:
        """Return the score of each patch with the local context, ``(n, c, down, across)``."""
        assert features.patches is not None
        assert features.grid is not None
        scores = self.level(self.text_scorer(features.patches, self.local_context()))
        maps: Tensor = scores.transpose(1, 2).unflatten(2, features.grid)
        return maps

    def tuned_texts(self) -> Tensor:
        """Return unit vectors of the labels with the global context, ``(c, d)``.

        In training, the vectors are those of the last forward pass, with gradients.
        """
        return self.global_context.latest()

    def encode_words(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return unit vectors of words, ``(k, d)``, with the global context and without it."""
        frozen = self.global_context.encode_frozen_words(words)
        return self.global_context.encode_words(words), frozen
