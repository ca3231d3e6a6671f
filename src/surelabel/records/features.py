"""This module defines records of image features and of the tensors of a training step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the index and the metrics do not import torch
    from torch import Tensor


@dataclass(frozen=True)
class Features:
    """Output of an image encoder for a batch of images.

    ``pooled``, ``patches`` and ``views`` are unit vectors if the encoder has a joint space of
    images and texts.

    Attributes:
        pooled: Pooled vectors of n images, ``(n, d)``.
        patches: Vectors of p patches of each image, ``(n, p, d)``, in row-major order of the
            patch grid.
        grid: Numbers of rows and columns of the patch grid.
        patch_mask: True where a patch exists, ``(n, p)``. In features of sentences, the patches are
            tokens, and the entries after the last token are padding. If None, all patches exist.
        attention: Attention weights of each patch over all patches, ``(n, p, p)``; rows sum to 1.
        views: Vectors of t separately encoded parts of each image, ``(n, t, d)``.
        layers: Tokens after selected layers of the tower, each ``(n, p, w)``, by layer index; the
            index -1 is the last layer. In features of the kind ``ladder``, the class token precedes
            the patch tokens, ``(n, 1 + p, w)``.
        pixels: Preprocessed images, ``(n, 3, height, width)``, for methods that train the encoder.
        multi_layer: Outputs of l layers of the tower at each patch, ``(n, p, l, w)``; see
            ``Encoder.encode_multi_layer_patches``.
        self_aware_sum: Sum of the outputs of self-aware attention over selected lower blocks,
            ``(n, p, w)``; see ``Encoder.encode_ladder_features``.
    """

    pooled: "Tensor"
    patches: "Tensor | None" = None
    grid: tuple[int, int] | None = None
    attention: "Tensor | None" = None
    views: "Tensor | None" = None
    layers: "dict[int, Tensor] | None" = None
    pixels: "Tensor | None" = None
    self_aware_sum: "Tensor | None" = None
    multi_layer: "Tensor | None" = None
    patch_mask: "Tensor | None" = None


@dataclass(frozen=True)
class FrozenTextVectors:
    """Words and their text vectors from the frozen text encoder, for regularizers.

    Attributes:
        labels: Labels of the fit; synonyms of one label are separated by ``|``.
        reference: Common nouns that the encoder was trained on. Some of these nouns may be labels.
        encode: Function that returns the unit vectors of a tuple of k words, ``(k, d)``. The
            vectors of earlier calls are cached.
    """

    labels: "Sequence[str]"
    reference: "Sequence[str]"
    encode: "Callable[[tuple[str, ...]], Tensor]"


@dataclass(frozen=True)
class TrainingStep:
    """Tensors of a training step for regularizers; gradients flow through scores and logits.

    Attributes:
        scores: Output scores of the method, ``(n, c)``.
        logits: Log-odds of the scores, not clipped, ``(n, c)``. If the loss has no link that is
            strictly increasing everywhere (focal, asymmetric, set losses), the value is None.
        targets: Targets in [0, 1] with 1 = positive, ``(n, c)``. If a target is unknown, the value
            is 0.
        known: Boolean mask of known targets, ``(n, c)``.
        texts: Unit vectors of the labels from the frozen text encoder, ``(c, d)``. If there is no
            text encoder, the value is None.
        features: Image vectors of the step, ``(n, d)``. If the step has no image vectors, the
            value is None.
        tuned_texts: Unit vectors of the labels from the learned prompts of the method, ``(c, d)``,
            with gradients. If the method has no learned prompts, the value is None.
        encode_words: Function that returns the unit vectors of k words from the learned prompts,
            ``(k, d)``, with gradients. If the method has no learned prompts, the value is None.
        frozen_text_vectors: Words for regularizers that compare words other than the labels. If
            there is no text encoder, the value is None.
    """

    scores: "Tensor"
    logits: "Tensor | None"
    targets: "Tensor"
    known: "Tensor"
    texts: "Tensor | None" = None
    features: "Tensor | None" = None
    tuned_texts: "Tensor | None" = None
    encode_words: "Callable[[Sequence[str]], Tensor] | None" = None
    frozen_text_vectors: "FrozenTextVectors | None" = None
