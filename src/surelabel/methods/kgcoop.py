"""Train CoOp with a penalty on the distance from the frozen text vectors (KgCoOp)."""

from collections.abc import Sequence
from dataclasses import replace

from surelabel.encoders import Encoder
from surelabel.methods.coop import CoOp


class KgCoOp(CoOp):
    """Learn a context like ``coop``, with the regularizer ``knowledge`` at a weight of 8.

    The regularizer keeps the learned text vectors near those of the frozen text tower, so that less
    of the knowledge about new labels is lost. Scores and settings are those of ``coop``. Another
    weight is set by ``regularizer.name=knowledge`` with ``regularizer_weight``.

    Args:
        encoder: Encoder of images and texts.
        names: Labels. Synonyms of one label are separated by ``|``.
        initial_context: Words whose token embeddings initialize the context. If empty, the context
            vectors are random.
        context_length: Number of context vectors that are initialized at random, >= 1. If None, the
            context is initialized by ``initial_context``, or has 16 vectors if ``initial_context``
            is empty.
        class_specific: Whether each label has its own context. Other labels then need another fit.

    Raises:
        ConfigError: If a setting is out of range, or if the encoder has no text tower of open_clip.
            Also if the context and a label together are longer than the text tower allows.

    Source:
        Yao et al., Visual-Language Prompt Tuning with Knowledge-Guided Context Optimization,
        CVPR 2023, arXiv:2303.13283. The weight and the initial context are those of the authors.

    Differs:
        The differences of ``coop`` also apply. The authors train for 100 epochs with batches of 128
        images.

        Each pair a/b is the mAP of the first 40 labels (a) and of the other labels (b) on the
        validation images of scenes-80. Fits have 10 epochs, and are otherwise those of ``coop``.
        Zero-shot scores have 53.4/49.3 with tiny-vit and 52.7/49.5 with tiny-rn. The regularizer
        keeps the mAP near that of zero-shot scores: the default has 53.5/49.3 with tiny-vit, and at
        a learning rate of 0.002, the mAP is 52.7/49.5 with tiny-rn. With 16 random vectors, it is
        53.5/49.1 with tiny-vit and 53.0/48.8 with tiny-rn. With 16 random vectors and a weight of
        1, it is 53.2/48.9 with tiny-rn.
    """

    recipe = replace(CoOp.recipe, learning_rate=0.02, regularizers={"knowledge": 8.0})

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        initial_context: str = "a photo of a",
        context_length: int | None = None,
        class_specific: bool = False,
    ):
        super().__init__(
            encoder,
            names,
            initial_context=initial_context,
            context_length=context_length,
            class_specific=class_specific,
        )
