"""Score labels with CoOp, which learns vectors in place of the words before the label."""

from collections.abc import Sequence

import torch
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.links import Link
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.prompt_tuning.learned_context import LearnedContext
from surelabel.methods.text_scoring.scale_and_bias import ScaleAndBias
from surelabel.methods.text_scoring.text_scorer import TextScorer
from surelabel.records import Features


class CoOp(Method):
    """Score an image by its cosine with the text of a label whose context is learned.

        t_c = text_tower([start] v_1 … v_m [label c] . [end])
        score = a · (tau · cos(x, t_c) - log mean_r exp(tau · cos(x, t_r))) + b

    v_1 to v_m are the learned context vectors, x is the image vector, and tau is the scale of the
    encoder. t_r are the frozen texts of the reference list, as in ``zero_shot``. a is a learned
    scale and b a learned bias, which all labels share. If the context is initialized by "a photo of
    a", training starts at the zero-shot scores.

    Images are not encoded again in training, because the learned vectors are inputs of the text
    tower only.

    Args:
        encoder: Encoder of images and texts.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit, unless the context is class-specific.
        initial_context: Words whose token embeddings initialize the context, such as "a photo of
            a". If empty, the context vectors are random.
        context_length: Number of context vectors that are initialized at random, >= 1. If None, the
            context is initialized by ``initial_context``, or has 16 vectors if ``initial_context``
            is empty.
        class_specific: Whether each label has its own context. Other labels then need another fit.

    Raises:
        ConfigError: If a setting is out of range, or if the encoder has no text tower of open_clip.
            Also if the context and a label together are longer than the text tower allows.

    Source:
        Zhou et al., Learning to Prompt for Vision-Language Models, IJCV 2022, arXiv:2109.01134.

    Differs:
        The paper computes a softmax over the labels; here each label has a separate score, because
        images have several labels. The term of the reference list, a and b are ours: without a
        bias, the sigmoid of a scaled cosine is about 1 for every label. The authors augment images
        and train with SGD at a learning rate of 0.002; here the optimizer is AdamW with a learning
        rate of 0.01.

        Each pair a/b is the mAP of the first 40 labels (a) and of the other labels (b) on the
        validation images of scenes-80. Fits have 20 epochs on the first 40 labels with 16 images
        each (mean of two seeds). Zero-shot scores have 53.4/49.3 with tiny-vit and 52.7/49.5 with
        tiny-rn; all further pairs have this order. The default has 54.3/47.8 and 54.7/47.7: the mAP
        of labels of the fit rises, and that of other labels falls. With 8 random vectors, the mAP
        is 52.9/48.4 with tiny-vit and 53.0/49.7 with tiny-rn; with 24 random vectors, it is
        53.6/45.0 and 55.2/40.2. At a learning rate of 0.005, the mAP is 53.8/46.9 and 55.0/46.4; at
        a learning rate of 0.02, it is 53.6/47.3 and 54.3/47.6. If the context is initialized by "a
        photo of a", the mAP stays near that of zero-shot scores. It is 53.5/49.2 with tiny-vit at a
        learning rate of 0.002, and 52.9/49.5 with tiny-rn at 0.01.
    """

    learns_from = "labels"
    needs: tuple[str, ...] = ()
    open_vocabulary = True
    recipe = TrainingRecipe(
        epochs=20, batch_size=32, learning_rate=0.01, weight_decay=0.0005, warm_up=0.05
    )

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        initial_context: str = "",
        context_length: int | None = None,
        class_specific: bool = False,
    ):
        super().__init__()
        self.text_scorer = TextScorer(encoder, names)
        self.context = LearnedContext(
            encoder,
            names,
            words=initial_context,
            length=context_length,
            class_specific=class_specific,
        )
        self.open_vocabulary = not class_specific
        self.level = ScaleAndBias()
        self.to(self.text_scorer.texts.device)

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize scale a and bias b by Platt scaling of the scores; see ``ScaleAndBias``."""
        self.level.initialize(self._pooled_scores(features), targets, known, link)

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of ``features.pooled`` ``(n, d)``."""
        scores: Tensor = self.level(self._pooled_scores(features))
        return scores

    def _pooled_scores(self, features: Features) -> Tensor:
        """Return the scores of images without scale and bias, ``(n, c)``."""
        scores: Tensor = self.text_scorer(features.pooled, self.context())
        return scores

    def tuned_texts(self) -> Tensor:
        """Return unit vectors of the labels with the learned context, ``(c, d)``.

        In training, the vectors are those of the last forward pass, with gradients.
        """
        return self.context.latest()

    def encode_words(self, words: Sequence[str]) -> Tensor:
        """Return unit vectors of words, ``(k, d)``, with the learned context.

        Raises:
            ConfigError: If the context is class-specific, or the context and a word are longer than
                the text tower allows.
        """
        return self.context.encode_words(words)
