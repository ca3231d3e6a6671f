"""What a frozen encoder can do.

Encoders that know pictures only, or ready-made vectors only, answer the rest with a ConfigError.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from PIL import Image
from torch import Tensor, nn

from surelabel.backbones.deep_texts import DeepTexts
from surelabel.backbones.upper import Upper
from surelabel.records import Features


class Backbone(Protocol):
    """A frozen encoder of images and texts into one space.

    Attributes:
        name: As it was asked for: ``tiny-vit``, ``ViT-B-16/openai``, ``local-dir:…``;
            a fine-tuned one says so.
        fingerprint: Changes with weights, architecture and preprocessing; keys every cache.
        width: Size ``d`` of the joint space.
        scale: What the encoder multiplies cosines with (exp of its learnt log scale).
        world: What its training pictures were, in a few words; empty when unknown.
        least_side: Pictures may be decoded smaller than they are, down to this many pixels.
        cover: What of an oblong picture is seen: ``whole`` where it is squashed, ``middle`` where
            that is cut out, ``padded`` where the whole gets margins.
        dense_parts: Which of ``self_aware`` and ``patches`` the tower gives, the best first.
        trunk_width: Size ``w`` of the tokens of ``trunk``.
        preprocess: How pictures are prepared; ``size`` is down and across.
    """

    name: str
    fingerprint: str
    width: int
    scale: float
    world: str
    preprocess: dict[str, Any]

    @property
    def least_side(self) -> int: ...

    @property
    def cover(self) -> str: ...

    @property
    def dense_parts(self) -> tuple[str, ...]: ...

    @property
    def trunk_width(self) -> int: ...

    def prepare(self, picture: Image.Image) -> Tensor:
        """One upright RGB picture, resized and normalised, ``(3, h, w)``. Safe in a worker."""

    def images(self, pixels: Tensor) -> Features:
        """``pooled`` unit vectors of prepared pictures ``(n, 3, h, w)``; nothing else."""

    def patches(self, pixels: Tensor) -> Features:
        """The same, with plain patch vectors of the last layer in the joint space."""

    def self_aware(self, pixels: Tensor) -> Features:
        """The same, with patches whose last layer attends by value to value."""

    def attentive(self, pixels: Tensor) -> Features:
        """The same, with ``attention``: how much each of these patches looks at each."""

    def trunk(self, pixels: Tensor) -> Features:
        """``pooled``, and in ``layers[-1]`` tokens ``(n, p, w)`` that are not in the joint space.

        They are what a head of one's own can start from, not of unit length.
        """

    def ladder(self, pixels: Tensor, *, first: int, depth: int) -> Features:
        """``pooled``, what enters the last ``depth`` blocks in ``layers[-depth - 1]``, and
        ``beside``: self-aware attention of blocks ``first`` (0-based) and above, below these.
        """

    def upper(self, depth: int) -> Upper:
        """The last ``depth`` blocks of the image tower, frozen, to be run from ``ladder``."""

    def deep_texts(
        self, names: Sequence[str], templates: Sequence[str], *, depth: int
    ) -> DeepTexts:
        """Names as the last ``depth`` layers of the text tower read them, prompts inside."""

    def gives(self, part: str) -> bool:
        """Whether it gives ``patches``, ``self_aware``, ``attentive``, ``trunk`` or ``ladder``."""

    def texts(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Unit vectors ``(c, d)``: for each name the mean over templates with one ``{}``."""

    def sentences(self, sentences: Sequence[str]) -> Tensor:
        """Unit vectors ``(s, d)`` of sentences as they are."""

    def untrained(self, names: Sequence[str]) -> list[str]:
        """Those of ``names`` that hold a token the encoder was never trained on."""

    def strangeness(self, pooled: Tensor) -> float:
        """How little a set of pictures looks like the training; above 1 is foreign, NaN unknown."""

    def at(self, size: int) -> "Backbone":
        """The same encoder for pictures of ``size`` pixels a side."""

    def dense(self) -> "Backbone":
        """The same encoder at the input size that patches ask for."""

    def network(self) -> nn.Module:
        """A trainable copy of the image part: prepared pictures ``(n, 3, h, w)`` to ``(n, d)``."""

    def with_network(self, network: nn.Module) -> "Backbone":
        """The same encoder, frozen again, with a trained copy of ``network()``."""

    def save(self, folder: Path) -> None:
        """Write all that loading it again without a network takes."""
