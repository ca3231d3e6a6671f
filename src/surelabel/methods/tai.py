"""Train the global and the local context of TaI-DPT on sentences in place of images."""

import math
from collections.abc import Sequence
from typing import ClassVar

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
)
from surelabel.methods.text_scoring.scale_and_bias import ScaleAndBias
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
    the texts of label c with the global and the local context. t_r are the texts of the reference
    list, as in ``zero_shot``, and tau is the scale of the encoder.

    No image is used in training: x is the vector of a sentence, and x_p are those of its tokens,
    with ``token_scale`` in place of ``spatial_scale``. The sentences are captions with the labels
    that they mention, and sentences of prompt templates.

    a and b are fitted to sentences, so the probabilities of images are not calibrated. On the test
    images of scenes-80, the ECE is 2.6 points with tiny-vit and 3.2 with tiny-rn, and 0.5 after
    ``calibrate`` with 500 annotated images.

    Args:
        encoder: Encoder of images and texts with patch vectors.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit.
        initial_context: Words whose token embeddings initialize both contexts.
        context_length: Number of vectors of each context that are initialized at random, >= 1. If
            None, the contexts are initialized by ``initial_context``, or have 16 vectors each if
            ``initial_context`` is empty.
        token_scale: Inverse temperature, >= 0, of the softmax over the tokens of a sentence.
        spatial_scale: Inverse temperature, >= 0, of the softmax over the patches of an image.

    Raises:
        ConfigError: If a setting is out of range, or if the encoder has no text tower of open_clip
            or no patch vectors. Also if a context and a label together are longer than the text
            tower allows.

    Source:
        Guo et al., Texts as Images in Prompt Tuning for Multi-Label Image Recognition, CVPR 2023,
        arXiv:2211.12739, and the constants of the code of the authors.

    Differs:
        The scores are relative to the reference list, and have a learned scale and bias; those of
        the paper are 4 · cos. The contexts are initialized by words, and trained with AdamW. The
        paper uses the loss ``ranking``. The default here is ``binary``, because of the measurements
        below.

        Each pair a/b is the mAP of 40 labels of the fit (a) and of 40 other labels (b) on the
        validation images of scenes-80. Zero-shot scores have 53.4/49.3 with tiny-vit, and 52.7/49.5
        with tiny-rn; all further pairs have this order. The default has 53.8/50.8 and 55.5/52.5.
        Both contexts without training have 53.8/50.5 and 55.9/52.4: the improvement comes from the
        patches, and training does not add to it. With ``ranking`` at a learning rate of 0.002, the
        mAP is 52.8/48.1 and 54.5/50.0; with ``ranking`` on 4 · cos, it is 53.6/50.2 and 54.8/51.9.
        With ``binary`` at a learning rate of 0.002, it is 53.0/50.1 and 55.8/52.4; if only the mean
        of both scores is trained, it is 49.4/46.9 and 55.3/52.8.
    """

    learns_from = "texts"
    branch_weights: ClassVar[tuple[float, ...]] = (0.5, 0.5)  # global and local score
    needs = ("self_aware",)
    open_vocabulary = True
    recipe = TrainingRecipe(
        epochs=20, batch_size=512, learning_rate=0.0005, weight_decay=0.0005, warm_up=0.05
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
                raise ConfigError(f"{setting} must be 0 or more, and finite; got {value}.")
        self.text_scorer = TextScorer(encoder, names)
        self.global_context, self.local_context = (
            LearnedContext(encoder, names, words=initial_context, length=context_length)
            for _ in range(2)
        )
        self.token_scale, self.spatial_scale = token_scale, spatial_scale
        self.level = ScaleAndBias()
        self.branch_levels = nn.ModuleList(ScaleAndBias() for _ in self.branch_weights)
        self.to(self.text_scorer.texts.device)

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize scales and biases by Platt scaling of the scores; see ``ScaleAndBias``."""
        branches = self._branch_scores(features, self.token_scale)
        levels = [*self.branch_levels, self.level]
        for level, scores in zip(levels, [*branches, self._mean(branches)], strict=True):
            assert isinstance(level, ScaleAndBias)
            level.initialize(scores, targets, known, link)

    def training_scores(self, features: Features, targets: Tensor, known: Tensor) -> Tensor:
        """Return the scores of each branch, and their mean, of n sentences, ``(h, n, c)``.

        The branches are the global and the local scores. Each head has a separate scale and bias.
        The mean trains only a and b, so that the contexts are trained as in the paper.

        Args:
            features: Features of the sentences, with the tokens as patches.
            targets: Targets in [0, 1], ``(n, c)``, for c labels.
            known: True where the target is known, ``(n, c)``.
        """
        branches = self._branch_scores(features, self.token_scale)
        heads = [level(s) for level, s in zip(self.branch_levels, branches, strict=True)]
        return torch.stack([*heads, self.level(self._mean(branches).detach())])

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of patches ``(n, p, d)`` and whole images ``(n, d)``."""
        assert features.patches is not None
        batches = zip(
            inference_batches(features.pooled, IMAGES_PER_BATCH),
            inference_batches(features.patches, IMAGES_PER_BATCH),
            strict=True,
        )
        scores = [
            self._mean(self._branch_scores(Features(pooled, patches=patches), self.spatial_scale))
            for pooled, patches in batches
        ]
        mean: Tensor = self.level(torch.cat(scores))
        return mean

    def _mean(self, branches: Tensor) -> Tensor:
        """Return the weighted mean ``(n, c)`` of the scores of the branches."""
        weighted = [w * scores for w, scores in zip(self.branch_weights, branches, strict=True)]
        return torch.stack(weighted).sum(dim=0)

    def _branch_scores(self, features: Features, scale: float) -> Tensor:
        """Return global and local scores without scale and bias, ``(2, n, c)``."""
        assert features.patches is not None
        texts = self.local_context()
        weights = softmax_region_weights(
            features.patches, texts, scale=scale, mask=features.patch_mask
        )
        return torch.stack(
            [
                self.text_scorer(features.pooled, self.global_context()),
                pool_region_scores(self.text_scorer(features.patches, texts), weights),
            ]
        )

    @torch.no_grad()
    def heat_maps(self, features: Features) -> Tensor:
        """Return the score of each label at each patch, ``(n, c, down, across)``.

        The score is that of the patch vector with the text of the local context.
        """
        assert features.patches is not None
        scores = self.level(self.text_scorer(features.patches, self.local_context()))
        return region_score_maps(scores, features.grid)

    def tuned_texts(self) -> Tensor:
        """Return unit vectors of the labels with the global context, ``(c, d)``.

        In training, the vectors are those of the last forward pass, with gradients.
        """
        return self.global_context.latest()

    def encode_words(self, words: Sequence[str]) -> Tensor:
        """Return unit vectors of words, ``(k, d)``, with the global context.

        Raises:
            ConfigError: If the context and a word together are longer than the text tower allows.
        """
        return self.global_context.encode_words(words)
