"""Interface of a frozen encoder.

Encoders without a text tower, and precomputed features, raise ConfigError in the other methods.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from PIL import Image
from torch import Tensor, nn

from surelabel.encoders.towers.deep_text_prompts import DeepPromptTextEncoder
from surelabel.encoders.towers.last_blocks import LastBlocks
from surelabel.records import Features

ENCODER_METHODS = {  # kind of features (also the key of the cache): method of the encoder
    "images": "encode_images",
    "patches": "encode_patches",
    "self_aware": "encode_self_aware_patches",
    "attentive": "encode_patches_with_attention",
    "trunk": "encode_trunk_tokens",
}


class Encoder(Protocol):
    """A frozen encoder of images and texts into a joint embedding space.

    Attributes:
        name: Name that the encoder was loaded by, such as ``tiny-vit``, ``ViT-B-16/openai`` or
            ``local-dir:…``; fine-tuned encoders have the suffix ``(fine-tuned)``.
        fingerprint: Hash of weights, architecture and preprocessing, the key of all caches.
        width: Dimension ``d`` of the joint embedding space.
        scale: Factor of the cosines in training (exp of the learned logit scale).
        training_domain: Short description of the training images; empty if unknown.
        preprocess_cfg: Preprocessing settings; ``size`` is height and width.
        input_side: Larger side of the input in pixels; images can be decoded at a reduced size
            as long as no side becomes smaller.
        crop_mode: How images that are not square fit the input: ``squash``, ``center`` or
            ``border``.
        patch_kinds: Supported kinds among ``self_aware`` and ``patches``, the better one first.
        trunk_width: Width ``w`` of the trunk tokens.
    """

    name: str
    fingerprint: str
    width: int
    scale: float
    training_domain: str
    preprocess_cfg: dict[str, Any]

    @property
    def input_side(self) -> int: ...

    @property
    def crop_mode(self) -> str: ...

    @property
    def patch_kinds(self) -> tuple[str, ...]: ...

    @property
    def trunk_width(self) -> int: ...

    def preprocess(self, image: Image.Image) -> Tensor:
        """Return an upright RGB image, resized and normalized, ``(3, h, w)``.

        It is safe to call in a data worker.
        """

    def encode_images(self, pixels: Tensor) -> Features:
        """Return ``pooled`` unit vectors of preprocessed images ``(n, 3, h, w)``."""

    def encode_patches(self, pixels: Tensor) -> Features:
        """Return ``pooled`` and plain ``patches`` of the last layer in the joint space."""

    def encode_self_aware_patches(self, pixels: Tensor) -> Features:
        """Return ``pooled`` and ``patches`` of value-to-value attention in the last layer."""

    def encode_patches_with_attention(self, pixels: Tensor) -> Features:
        """Return ``pooled``, self-aware ``patches``, and the ``attention`` between patches."""

    def encode_trunk_tokens(self, pixels: Tensor) -> Features:
        """Return ``pooled``, and tokens outside the joint space in ``layers[-1]``, ``(n, p, w)``.

        The tokens are the input of a trainable head. They are not unit vectors.
        """

    def encode_ladder_features(self, pixels: Tensor, *, first_block: int, depth: int) -> Features:
        """Return the input of the last blocks and the self-aware attention of lower blocks.

        Args:
            pixels: Preprocessed images, ``(n, 3, h, w)``.
            first_block: Index of the first block in the sum of self-aware attention, 0-based.
            depth: Number of last blocks that are run again later.

        Returns:
            ``pooled``; ``layers[-depth - 1]``, the input of the last ``depth`` blocks;
            ``self_aware_sum``, the sum over the blocks from ``first_block`` up to these.
        """

    def last_blocks(self, depth: int) -> LastBlocks:
        """Return the last ``depth`` blocks of the image tower, frozen."""

    def deep_prompt_text_encoder(
        self, names: Sequence[str], templates: Sequence[str], *, depth: int
    ) -> DeepPromptTextEncoder:
        """Return an encoder of labels with prompts in the last ``depth`` text layers."""

    def supports(self, kind: str) -> bool:
        """Return whether the encoder computes a kind of features.

        Args:
            kind: A key of ``ENCODER_METHODS`` or ``ladder``.
        """

    def encode_labels(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Return one unit vector per label, the mean over prompt templates, ``(c, d)``."""

    def encode_sentences(self, sentences: Sequence[str]) -> Tensor:
        """Return one unit vector per sentence, ``(s, d)``."""

    def labels_with_untrained_tokens(self, names: Sequence[str]) -> list[str]:
        """Return the labels with a token that does not occur in the training texts."""

    def ood_score(self, pooled: Tensor) -> float:
        """Return the out-of-distribution score of a set of images; NaN if it is unknown.

        A set with a score above 1 is out of distribution.
        """

    def with_image_size(self, size: int) -> "Encoder":
        """Return this encoder for images of ``size`` by ``size`` pixels."""

    def with_dense_image_size(self) -> "Encoder":
        """Return this encoder at the image size for patch features."""

    def trainable_network(self) -> nn.Module:
        """Return a trainable copy of the image tower, ``(n, 3, h, w)`` to ``(n, d)``."""

    def with_network(self, network: nn.Module) -> "Encoder":
        """Return this encoder, frozen, with a trained copy of ``trainable_network()``."""

    def save(self, folder: Path) -> None:
        """Write all files for loading the encoder without a network connection."""
