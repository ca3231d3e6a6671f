"""Score labels with CoCoOp, whose learned context is shifted by a function of the image vector."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.links import Link
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.prompt_tuning.learned_context import LearnedContext
from surelabel.methods.text_scoring.scale_and_bias import ScaleAndBias
from surelabel.methods.text_scoring.text_scorer import TextScorer
from surelabel.records import Features

IMAGES_PER_CHUNK = 32  # images whose text vectors are in memory at once outside training


class CoCoOp(Method):
    """Score an image by its cosine with label texts whose context depends on the image.

        v_j(x) = v_j + W2 relu(W1 x + b1) + b2
        t_c(x) = text_tower([start] v_1(x) … v_m(x) [label c] . [end])
        score = a · (tau · cos(x, t_c(x)) - log mean_r exp(tau · cos(x, t_r))) + b

    v_1 to v_m are the learned context vectors, x is the image vector, and tau is the scale of the
    encoder. t_r are the frozen texts of the reference list, as in ``zero_shot``. a is a learned
    scale and b a learned bias, which all labels share.

    The text tower encodes every label for every image, so a batch of n images and c labels needs
    n · c sentences. The sentences are encoded in chunks, so that the memory for the activations of
    the tower does not grow with n · c.

    Args:
        encoder: Encoder of images and texts.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit.
        initial_context: Words whose token embeddings initialize the context, such as "a photo of
            a". If empty, the context vectors are random.
        context_length: Number of context vectors that are initialized at random, >= 1. If None, the
            context is initialized by ``initial_context``, or has 16 vectors if ``initial_context``
            is empty.
        reduction: Width of the image vectors divided by the width of the hidden layer, >= 1.

    Raises:
        ConfigError: If a setting is out of range, or if the encoder has no text tower of open_clip.
            Also if the context and a label together are longer than the text tower allows.

    Source:
        Zhou et al., Conditional Prompt Learning for Vision-Language Models, CVPR 2022,
        arXiv:2203.05557.

    Differs:
        The differences of ``coop`` also apply. The authors train with one image per batch; here a
        batch has several images, because some regularizers compare images. The last layer of the
        image network is initialized to zero instead of random values, so that training starts with
        the scores of the initial context. The authors initialize the context by "a photo of a".

        Each pair a/b is the mAP of the first 40 labels (a) and of the other labels (b) on the
        validation images of scenes-80. Fits have 5 epochs, and are otherwise those of ``coop``.
        Zero-shot scores have 53.4/49.3 with tiny-vit and 52.7/49.5 with tiny-rn, and the default
        has 53.8/48.3 and 53.4/48.5, respectively. If the context is initialized by "a photo of a",
        the mAP is 53.5/49.0 with tiny-vit and 52.6/49.4 with tiny-rn. With tiny-vit at a learning
        rate of 0.005, it is 53.4/48.2.
    """

    learns_from = "labels"
    needs = ()
    open_vocabulary = True
    recipe = TrainingRecipe(
        epochs=5,
        batch_size=32,
        micro_batch_size=32,
        learning_rate=0.01,
        weight_decay=0.0005,
        warm_up=0.05,
    )

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        initial_context: str = "",
        context_length: int | None = None,
        reduction: int = 16,
    ):
        super().__init__()
        if reduction < 1:
            raise ConfigError(f"reduction must be 1 or more; got {reduction}.")
        self.text_scorer = TextScorer(encoder, names)
        self.context = LearnedContext(encoder, names, words=initial_context, length=context_length)
        hidden = max(1, encoder.width // reduction)
        self.image_network = nn.Sequential(
            nn.Linear(encoder.width, hidden),
            nn.ReLU(),
            nn.Linear(hidden, self.context.vectors.shape[-1]),
        )
        for parameter in self.image_network[2].parameters():
            nn.init.zeros_(parameter)
        self.level = ScaleAndBias()
        self.to(self.text_scorer.texts.device)

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize scale a and bias b by Platt scaling of the scores; see ``ScaleAndBias``."""
        scores = self.text_scorer(features.pooled, self.context())
        self.level.initialize(scores, targets, known, link)

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of ``features.pooled`` ``(n, d)``."""
        chunks = features.pooled.split(IMAGES_PER_CHUNK)
        scores: Tensor = self.level(torch.cat([self._chunk_scores(chunk) for chunk in chunks]))
        return scores

    def _chunk_scores(self, pooled: Tensor) -> Tensor:
        """Return the scores ``(n, c)`` of image vectors ``(n, d)``, without scale and bias."""
        shifts = self.image_network(pooled)[:, None]
        texts = self.context.encode_for_images(self.context.vectors + shifts)
        pairs = zip(pooled, texts, strict=True)
        rows: list[Tensor] = [self.text_scorer(vector[None], text) for vector, text in pairs]
        return torch.cat(rows)

    def tuned_texts(self) -> Tensor:
        """Return unit vectors of the labels with the unshifted context, ``(c, d)``.

        The unshifted context does not depend on an image.
        """
        texts: Tensor = self.context()
        return texts

    def encode_words(self, words: Sequence[str]) -> Tensor:
        """Return unit vectors of words, ``(k, d)``, with the unshifted context.

        The unshifted context does not depend on an image.

        Raises:
            ConfigError: If the context and a word together are longer than the text tower allows.
        """
        return self.context.encode_words(words)
