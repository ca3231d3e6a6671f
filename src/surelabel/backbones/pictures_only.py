"""What an encoder without a text tower answers when it is asked for more than pictures."""

import math
from collections.abc import Sequence
from typing import Any, NoReturn, Self

from torch import Tensor, nn

from surelabel.backbones.deep_texts import DeepTexts
from surelabel.backbones.preparation import Preparation
from surelabel.backbones.protocol import Backbone
from surelabel.backbones.upper import Upper
from surelabel.errors import ConfigError
from surelabel.records import Features


def no_trunk(name: str) -> ConfigError:
    """What is said by an encoder that cannot be opened before its last layer."""
    return ConfigError(
        f"{name} gives vectors of whole pictures alone, and a head on its trunk needs more: take "
        "timm:NAME or an encoder of open_clip, such as ViT-B-16/openai."
    )


class WithoutTexts:
    """What all encoders that know no words answer, and those of ready-made vectors.

    Args:
        name: As it was asked for.
    """

    scale = 1.0
    world = ""
    dense_parts: tuple[str, ...] = ()
    preprocess: dict[str, Any]

    def __init__(self, name: str):
        self.name = name

    def dense(self) -> Self:
        """The same encoder: there are no patches that could ask for another size."""
        return self

    def patches(self, pixels: Tensor) -> Features:
        """Raise ConfigError: there is no joint space that patches could lie in."""
        self._no_patches()

    def self_aware(self, pixels: Tensor) -> Features:
        """Raise ConfigError: there is no joint space that patches could lie in."""
        self._no_patches()

    def attentive(self, pixels: Tensor) -> Features:
        """Raise ConfigError: there is no joint space that patches could lie in."""
        self._no_patches()

    def trunk(self, pixels: Tensor) -> Features:
        """Raise ConfigError: nobody can look inside."""
        raise no_trunk(self.name)

    def ladder(self, pixels: Tensor, *, first: int, depth: int) -> Features:
        """Raise ConfigError: there are no blocks that lead into a joint space."""
        self._no_blocks()

    def upper(self, depth: int) -> Upper:
        """Raise ConfigError: there are no blocks that lead into a joint space."""
        self._no_blocks()

    @property
    def trunk_width(self) -> int:
        """Raise ConfigError: nobody can look inside."""
        raise no_trunk(self.name)

    def gives(self, part: str) -> bool:
        """False: neither patches nor a trunk nor blocks."""
        return False

    def at(self, size: int) -> Self:
        """The same encoder, if pictures of ``size`` pixels a side are what it takes.

        Raises:
            ConfigError: they are not.
        """
        if [size, size] == self.preprocess["size"]:
            return self
        down, across = self.preprocess["size"]
        raise ConfigError(
            f"{self.name} takes pictures of {down} by {across} pixels, and {size} by {size} are "
            f"asked for: open it with backbone.size={size}, or leave the method at its own size."
        )

    def texts(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Raise ConfigError: there is no text tower."""
        self._no_texts()

    def deep_texts(
        self, names: Sequence[str], templates: Sequence[str], *, depth: int
    ) -> DeepTexts:
        """Raise ConfigError: there is no text tower."""
        self._no_texts()

    def sentences(self, sentences: Sequence[str]) -> Tensor:
        """Raise ConfigError: there is no text tower."""
        self._no_texts()

    def untrained(self, names: Sequence[str]) -> list[str]:
        """None of ``names``: no word means anything here."""
        return []

    def strangeness(self, pooled: Tensor) -> float:
        """NaN: nobody knows what the training pictures looked like."""
        return math.nan

    def network(self) -> nn.Module:
        """Raise ConfigError: it cannot be trained."""
        self._no_network()

    def with_network(self, network: nn.Module) -> Backbone:
        """Raise ConfigError: it cannot be trained."""
        self._no_network()

    def _no_patches(self) -> NoReturn:
        raise ConfigError(
            f"{self.name} gives one vector a picture and none for its patches; use a method that "
            "needs the pooled vector only, such as method.name=linear."
        )

    def _no_blocks(self) -> NoReturn:
        raise ConfigError(
            f"{self.name} gives no blocks of a ViT whose tokens could be compared with words: take "
            "tiny-vit, or ViT-B-16/openai."
        )

    def _no_texts(self) -> NoReturn:
        raise ConfigError(
            f"{self.name} knows no words, so there is nothing to compare its vectors with: use a "
            "method that learns from labels alone, such as method.name=linear, or an encoder with "
            "a text tower, such as ViT-B-16/openai."
        )

    def _no_network(self) -> NoReturn:
        raise ConfigError(
            f"{self.name} cannot be trained: take its vectors as they are (method.name=linear), "
            "or an encoder that can be, such as timm:NAME or ViT-B-16/openai."
        )


class PicturesOnly(WithoutTexts):
    """The same, with what follows from how pictures are prepared.

    Args:
        name: As it was asked for.
        prepare: From an upright RGB picture to ``(3, h, w)``.
    """

    def __init__(self, name: str, prepare: Preparation):
        super().__init__(name)
        self.prepare, self.preprocess = prepare, prepare.settings

    @property
    def least_side(self) -> int:
        """Shorter side below which a picture would have to be enlarged, in pixels."""
        return self.prepare.least_side

    @property
    def cover(self) -> str:
        """What of an oblong picture is seen: ``whole``, ``middle``, or ``padded`` with margins."""
        return self.prepare.cover
