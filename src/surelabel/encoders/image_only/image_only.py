"""This module defines base classes of encoders that support only a part of the interface."""

import math
from collections.abc import Sequence
from typing import Any, NoReturn, Self

import torch
from torch import Tensor, nn

from surelabel.encoders.engines.interface import TORCH_FP32
from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor
from surelabel.encoders.interface import Encoder
from surelabel.encoders.towers.context_prompts import ContextPromptTextEncoder
from surelabel.encoders.towers.deep_text_prompts import DeepPromptTextEncoder
from surelabel.encoders.towers.last_blocks import LastBlocks
from surelabel.encoders.towers.trainable_blocks import TrainableLastBlocks
from surelabel.errors import ConfigError
from surelabel.records import EncoderLicense, Features


def image_only_encoder_trunk_error(name: str) -> ConfigError:
    """Return the error of an encoder that computes no trunk tokens.

    Args:
        name: Name of the encoder, for the error message.
    """
    return ConfigError(
        f"{name} computes one vector per image, but no trunk tokens. Use timm:NAME or an encoder "
        "of open_clip, such as ViT-B-16/openai."
    )


class BaseImageOnlyEncoder:
    """Base class of encoders without a text tower, or with a part of the methods for texts.

    Unsupported methods raise ConfigError.

    Args:
        name: Model name that was used to load the encoder.
    """

    scale = 1.0
    logit_bias: float | None = None
    training_domain = ""
    license = EncoderLicense()
    device = torch.device("cpu")
    engine = TORCH_FP32
    patch_kinds: tuple[str, ...] = ()
    preprocess_cfg: dict[str, Any]

    def __init__(self, name: str):
        self.name = name

    def with_dense_image_size(self) -> Self:
        """Return this encoder unchanged, because the encoder has no patch features."""
        return self

    def encode_patches(self, pixels: Tensor) -> Features:
        """Raise ConfigError, because the encoder has no patch vectors."""
        self._raise_no_patches()

    def encode_self_aware_patches(self, pixels: Tensor) -> Features:
        """Raise ConfigError, because the encoder has no patch vectors."""
        self._raise_no_patches()

    def encode_patches_with_attention(self, pixels: Tensor) -> Features:
        """Raise ConfigError, because the encoder has no patch vectors."""
        self._raise_no_patches()

    def encode_multi_layer_patches(self, pixels: Tensor) -> Features:
        """Raise ConfigError, because the encoder has no patch vectors."""
        self._raise_no_patches()

    def encode_trunk_tokens(self, pixels: Tensor) -> Features:
        """Raise ConfigError, because the encoder has no trunk tokens."""
        raise image_only_encoder_trunk_error(self.name)

    def encode_ladder_features(self, pixels: Tensor, *, first_block: int, depth: int) -> Features:
        """Raise ConfigError, because the encoder has no joint space of images and texts."""
        self._raise_no_blocks()

    def last_blocks(self, depth: int) -> LastBlocks:
        """Raise ConfigError, because the encoder has no joint space of images and texts."""
        self._raise_no_blocks()

    def trainable_last_blocks(self, depth: int) -> TrainableLastBlocks:
        """Raise ConfigError, because the encoder has no joint space of images and texts."""
        self._raise_no_blocks()

    @property
    def trunk_width(self) -> int:
        """Raise ConfigError, because the encoder has no trunk tokens."""
        raise image_only_encoder_trunk_error(self.name)

    @property
    def multi_layer_shape(self) -> tuple[int, int]:
        """Raise ConfigError, because the encoder has no patch vectors."""
        self._raise_no_patches()

    def supports(self, kind: str) -> bool:
        """Return False, because the encoder computes no features other than ``images``."""
        return False

    def with_image_size(self, size: int) -> Self:
        """Return this encoder, whose image size must be ``size`` by ``size`` pixels.

        Raises:
            ConfigError: If the encoder has another image size.
        """
        if [size, size] == self.preprocess_cfg["size"]:
            return self
        height, width = self.preprocess_cfg["size"]
        raise ConfigError(
            f"The image size of {self.name} must be {height} by {width} pixels; got {size} by "
            f"{size}. Set encoder.size={size}, or remove method.image_size."
        )

    def encode_labels(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Raise ConfigError, because the encoder has no text tower."""
        self._raise_no_text_tower()

    def deep_prompt_text_encoder(
        self, names: Sequence[str], templates: Sequence[str], *, depth: int
    ) -> DeepPromptTextEncoder:
        """Raise ConfigError, because the encoder has no text tower."""
        self._raise_no_text_tower()

    def context_prompt_text_encoder(
        self, names: Sequence[str], *, length: int
    ) -> ContextPromptTextEncoder:
        """Raise ConfigError, because the encoder has no text tower."""
        self._raise_no_text_tower()

    def encode_sentences(self, sentences: Sequence[str]) -> Tensor:
        """Raise ConfigError, because the encoder has no text tower."""
        self._raise_no_text_tower()

    def encode_sentence_tokens(self, sentences: Sequence[str]) -> Features:
        """Raise ConfigError, because the encoder has no text tower."""
        self._raise_no_text_tower()

    def encode_sentence_block_tokens(self, sentences: Sequence[str], *, depth: int) -> Features:
        """Raise ConfigError, because the encoder has no text tower."""
        self._raise_no_text_tower()

    def labels_with_untrained_tokens(self, names: Sequence[str]) -> list[str]:
        """Return an empty list, because the training texts of the encoder are unknown."""
        return []

    def count_cut_tokens(self, sentences: Sequence[str]) -> list[int]:
        """Raise ConfigError, because the encoder has no text tower."""
        self._raise_no_text_tower()

    def ood_score(self, pooled: Tensor) -> float:
        """Return NaN, because the training images of the encoder are unknown."""
        return math.nan

    def trainable_network(self) -> nn.Module:
        """Raise ConfigError, because the encoder cannot be trained."""
        self._raise_not_trainable()

    def with_network(self, network: nn.Module) -> Encoder:
        """Raise ConfigError, because the encoder cannot be trained."""
        self._raise_not_trainable()

    def _raise_no_patches(self) -> NoReturn:
        raise ConfigError(
            f"{self.name} computes one vector per image, but no patch vectors. Use a method that "
            "needs only the pooled vector, such as method.name=linear."
        )

    def _raise_no_blocks(self) -> NoReturn:
        raise ConfigError(
            f"{self.name} has no ViT blocks whose tokens can be compared with texts. Use tiny-vit "
            "or ViT-B-16/openai."
        )

    def _raise_no_text_tower(self) -> NoReturn:
        raise ConfigError(
            f"{self.name} has no text tower, so labels cannot be encoded. Use a method without "
            "texts, such as method.name=linear, or an encoder with a text tower, such as "
            "ViT-B-16/openai."
        )

    def _raise_not_trainable(self) -> NoReturn:
        raise ConfigError(
            f"{self.name} cannot be trained. Use a method that does not train the encoder "
            "(method.name=linear), or a trainable encoder, such as timm:NAME or ViT-B-16/openai."
        )


class ImageOnlyEncoder(BaseImageOnlyEncoder):
    """Base class of encoders without a text tower that preprocess and encode images.

    Args:
        name: Model name that was used to load the encoder.
        preprocess: Function that converts an upright RGB image to a tensor ``(3, h, w)``.
    """

    def __init__(self, name: str, preprocess: ImagePreprocessor):
        super().__init__(name)
        self.preprocess, self.preprocess_cfg = preprocess, preprocess.settings

    @property
    def input_side(self) -> int:
        """Return the larger side of the preprocessed images, in pixels."""
        return self.preprocess.input_side

    @property
    def crop_mode(self) -> str:
        """Return the crop mode of the preprocessing.

        Returns:
            Crop mode ``squash``, ``center`` or ``border``, as in :class:`ImagePreprocessor`.
        """
        return self.preprocess.crop_mode
