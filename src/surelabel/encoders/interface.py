"""This module defines the interface of a frozen encoder.

If an encoder does not support a method of the interface, the method raises ConfigError.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from PIL import Image
from torch import Tensor, nn

from surelabel.encoders.engines.interface import EngineSettings
from surelabel.encoders.towers.context_prompts import ContextPromptTextEncoder
from surelabel.encoders.towers.deep_text_prompts import DeepPromptTextEncoder
from surelabel.encoders.towers.last_blocks import LastBlocks
from surelabel.encoders.towers.trainable_blocks import TrainableLastBlocks
from surelabel.records import EncoderLicense, Features

ENCODER_METHODS = {  # kind of features (also the key of the cache): method of the encoder
    "images": "encode_images",
    "patches": "encode_patches",
    "self_aware": "encode_self_aware_patches",
    "attentive": "encode_patches_with_attention",
    "multi_layer": "encode_multi_layer_patches",
    "trunk": "encode_trunk_tokens",
}


class Encoder(Protocol):
    """A frozen encoder of images and texts into a joint embedding space.

    In shapes, ``n`` is the number of images, and ``p`` is the number of patches or other grid
    positions of an image. ``d`` is the dimension of the joint space, and ``w`` is the width of a
    token.

    Attributes:
        name: Model name that was used to load the encoder, such as ``tiny-vit``,
            ``ViT-B-16/openai`` or ``local-dir:…``. The names of fine-tuned encoders end with
            ``(fine-tuned)``.
        fingerprint: Hash of weights, architecture and preprocessing settings. The hash is part of
            the keys of all feature caches.
        width: Dimension ``d`` of the joint embedding space.
        scale: Factor of the cosine similarities in contrastive training, that is, the exponential
            of the learned ``logit_scale``.
        logit_bias: Bias that is added to the scaled cosines in training with the sigmoid loss, as
            in SigLIP, so that the sum is a log-odds. If the encoder was trained with another loss,
            the value is None.
        training_domain: Short description of the training images. If the training images are
            unknown, the description is empty.
        license: License of the weights.
        device: Device of the encoder.
        engine: Engine and number format with which features of images are computed.
        preprocess_cfg: Preprocessing settings with the keys of :class:`ImagePreprocessor`, such as
            ``size``, the height and width in pixels.
        n_image_parameters: Number of parameters of the image encoder, from which the computing time
            of an image is estimated.
        input_side: Larger side of the input images, in pixels. Images can be decoded at a reduced
            size if neither side becomes shorter than ``input_side``.
        crop_mode: Crop mode of the preprocessing: ``squash`` (resize both sides), ``center``
            (center crop) or ``border`` (padding).
        patch_kinds: Kinds of patch features that differ: ``self_aware``, ``patches`` or both. The
            first kind is recommended. If the only kind is ``patches``, self-aware patches are plain
            patches.
        trunk_width: Number of values ``w`` of each trunk token. Trunk tokens are the outputs of
            the image tower before pooling.
        multi_layer_shape: Number of layers ``l`` and number of values ``w`` of each layer in
            ``multi_layer``.
    """

    name: str
    fingerprint: str
    width: int
    scale: float
    logit_bias: float | None
    training_domain: str
    license: EncoderLicense
    device: torch.device
    engine: EngineSettings
    preprocess_cfg: dict[str, Any]

    @property
    def n_image_parameters(self) -> int: ...

    @property
    def input_side(self) -> int: ...

    @property
    def crop_mode(self) -> str: ...

    @property
    def patch_kinds(self) -> tuple[str, ...]: ...

    @property
    def trunk_width(self) -> int: ...

    @property
    def multi_layer_shape(self) -> tuple[int, int]: ...

    def preprocess(self, image: Image.Image) -> Tensor:
        """Return the resized and normalized pixels of an upright RGB image, ``(3, h, w)``.

        This method can be called in data workers.
        """

    def encode_images(self, pixels: Tensor) -> Features:
        """Return ``pooled`` unit vectors of preprocessed images ``(n, 3, h, w)``."""

    def encode_patches(self, pixels: Tensor) -> Features:
        """Return unit vectors of images, ``pooled``, and plain patch vectors, ``patches``.

        Plain patch vectors are the last outputs of the tower at each patch, projected to the joint
        space and normalized.
        """

    def encode_self_aware_patches(self, pixels: Tensor) -> Features:
        """Return unit vectors of images, ``pooled``, and of patches, ``patches``.

        The patch vectors are computed with value-to-value attention in the last layer. If the image
        tower has no such layer, the patch vectors are plain patch vectors.
        """

    def encode_patches_with_attention(self, pixels: Tensor) -> Features:
        """Return ``pooled``, self-aware ``patches``, and the ``attention`` between patches.

        The vectors are computed as in :meth:`encode_self_aware_patches`. The attention weights
        between the patches of each image have the shape ``(n, p, p)``, and the sum of each row is
        1.
        """

    def encode_multi_layer_patches(self, pixels: Tensor) -> Features:
        """Return ``pooled``, ``patches`` and the outputs of several layers, ``multi_layer``.

        Patches are averaged in the cells of a grid of at most 8 by 8 cells. The result is computed
        by :func:`multi_layer_patch_features`.
        """

    def encode_trunk_tokens(self, pixels: Tensor) -> Features:
        """Return ``pooled``, and trunk tokens in ``layers[-1]``, ``(n, p, w)``.

        Trunk tokens are the outputs of the image tower before pooling, which are the input of a
        trainable head. Trunk tokens are not normalized.
        """

    def encode_ladder_features(self, pixels: Tensor, *, first_block: int, depth: int) -> Features:
        """Return the input features of a ladder, a side network on the last ViT blocks.

        Args:
            pixels: Preprocessed images, ``(n, 3, h, w)``.
            first_block: Index of the first block in the sum of self-aware attention, 0-based.
            depth: Number of last blocks that the ladder computes again. These blocks are not in
                the sum.

        Returns:
            Features with the unit vectors ``pooled``, the input tokens ``layers[-depth - 1]`` of
            the last ``depth`` blocks, and ``self_aware_sum``. This sum is over the outputs of
            self-aware attention in the blocks from ``first_block`` on, without the last ``depth``
            blocks.
        """

    def last_blocks(self, depth: int) -> LastBlocks:
        """Return the last ``depth`` blocks of the image tower with frozen weights."""

    def trainable_last_blocks(self, depth: int) -> TrainableLastBlocks:
        """Return trainable copies of the last ``depth`` blocks of both towers.

        The inputs of the image blocks are the tokens of :meth:`encode_ladder_features`. The inputs
        of the text blocks are the tokens of :meth:`encode_sentence_block_tokens`.
        """

    def deep_prompt_text_encoder(
        self, names: Sequence[str], templates: Sequence[str], *, depth: int
    ) -> DeepPromptTextEncoder:
        """Return an encoder of labels with learned prompts in the last ``depth`` text layers."""

    def context_prompt_text_encoder(
        self, names: Sequence[str], *, length: int
    ) -> ContextPromptTextEncoder:
        """Return an encoder of labels with a learned context of ``length`` vectors."""

    def supports(self, kind: str) -> bool:
        """Return True if the encoder can compute the features ``kind``.

        Args:
            kind: Kind of features: ``ladder``, or a key of ``ENCODER_METHODS`` except ``images``,
                which each encoder computes.
        """

    def encode_labels(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Return one unit vector for each of ``c`` labels, ``(c, d)``.

        The vector of a label is the normalized mean of the unit vectors over the prompt templates.
        """

    def encode_sentences(self, sentences: Sequence[str]) -> Tensor:
        """Return one unit vector for each of ``s`` sentences, ``(s, d)``."""

    def encode_sentence_tokens(self, sentences: Sequence[str]) -> Features:
        """Return unit vectors of sentences, ``pooled``, and of their tokens, ``patches``.

        In the result, ``n`` is the number of sentences, and ``p`` is the number of tokens of the
        longest sentence. ``patch_mask`` is True where a sentence has a token.
        """

    def encode_sentence_block_tokens(self, sentences: Sequence[str], *, depth: int) -> Features:
        """Return the input tokens of the last ``depth`` blocks of the text tower.

        Returns:
            Features with the unit vectors ``pooled``, the tokens ``layers[-depth - 1]``, and
            ``patch_mask``, which is True where a sentence has a token.
        """

    def labels_with_untrained_tokens(self, names: Sequence[str]) -> list[str]:
        """Return the labels with at least one token that does not occur in the training texts."""

    def count_cut_tokens(self, sentences: Sequence[str]) -> list[int]:
        """Return the number of tokens of each sentence beyond the context of the text tower."""

    def ood_score(self, pooled: Tensor) -> float:
        """Return the out-of-distribution score of a set of images.

        A set with a score above 1 is out of distribution. If the encoder has no out-of-distribution
        detector, the score is NaN.

        Args:
            pooled: Unit vectors of the images of the set, ``(n, d)``.
        """

    def with_image_size(self, size: int) -> "Encoder":
        """Return a version of this encoder for images of ``size`` by ``size`` pixels."""

    def with_dense_image_size(self) -> "Encoder":
        """Return a version of this encoder at the image size recommended for patch features."""

    def trainable_network(self) -> nn.Module:
        """Return a trainable copy of the image tower, which maps ``(n, 3, h, w)`` to ``(n, d)``."""

    def with_network(self, network: nn.Module) -> "Encoder":
        """Return a frozen encoder with the image tower ``network``.

        Args:
            network: Module that ``trainable_network()`` returned, after training.
        """

    def save(self, folder: Path) -> None:
        """Write the encoder to a folder, so that it can be loaded without a network connection."""
