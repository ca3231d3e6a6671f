"""KgCoOp: CoOp with a penalty on the distance from the frozen text vectors."""

from dataclasses import replace

from surelabel.methods.coop import CoOp


class KgCoOp(CoOp):
    """Learn a context as ``coop``, with the regularizer ``knowledge`` of weight 8.

    The regularizer keeps the learned text vectors near those of the frozen text tower, so that less
    of the knowledge about new labels is lost. Scores and settings are those of ``coop``. Another
    weight is set by ``regularizer.name=knowledge`` with ``regularizer_weight``.

    Args:
        encoder: Encoder of images and texts.
        names: Labels. Synonyms of one label are separated by ``|``.
        initial_context: Words whose token embeddings initialize the context.
        context_length: Number of context vectors that are initialized at random, >= 1. If None, the
            context is initialized by ``initial_context``.
        class_specific: Whether each label has its own context. Other labels then need another fit.

    Raises:
        ConfigError: If a setting is out of range, the encoder has no text tower of open_clip, or
            the context and a label are longer than the text tower allows.

    Source:
        Yao et al., Visual-Language Prompt Tuning with Knowledge-Guided Context Optimization,
        CVPR 2023, arXiv:2303.13283. The weight is that of the authors.

    Differs:
        As for ``coop``. The authors train 100 epochs with batches of 128 images.
    """

    recipe = replace(CoOp.recipe, regularizers={"knowledge": 8.0})
