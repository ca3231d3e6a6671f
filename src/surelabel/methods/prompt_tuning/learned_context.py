"""Compute text vectors of labels with a learned context."""

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError

INITIAL_DEVIATION = 0.02  # standard deviation of random context vectors
RANDOM_VECTORS = 16  # number of vectors of a context without words, as in the paper


class LearnedContext(nn.Module):
    """Compute text vectors of labels with learned context vectors before the label.

    In evaluation mode without gradients, the vectors are computed once and cached until training
    continues or the context vectors change.

    Args:
        encoder: Encoder whose text tower stays frozen.
        names: Labels. Synonyms of one label are separated by ``|``.
        words: Text whose token embeddings initialize the context, or an empty text.
        length: Number of context vectors that are initialized at random, >= 1. If None, the context
            is initialized by ``words``, or has 16 random vectors if ``words`` is empty.
        class_specific: Whether each label has its own context vectors.

    Attributes:
        vectors: Context vectors, ``(m, w)``, or ``(c, m, w)`` if they are class-specific.

    Raises:
        ConfigError: If ``length`` is out of range, or if the encoder has no text tower of
            open_clip. Also if the context and a label together are longer than the text tower
            allows.

    Source:
        Zhou et al., Learning to Prompt for Vision-Language Models, IJCV 2022, arXiv:2109.01134,
        section 3.2.
    """

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        words: str,
        length: int | None,
        class_specific: bool = False,
    ):
        super().__init__()
        if length is None and not words.strip():
            length = RANDOM_VECTORS
        probe = encoder.context_prompt_text_encoder(["thing"], length=1)
        initial = probe.embed_words(words) if length is None else None
        length = len(initial) if initial is not None else length
        self._text_encoder = encoder.context_prompt_text_encoder(names, length=length or 0)
        if initial is None:
            initial = INITIAL_DEVIATION * torch.randn(self._text_encoder.length, probe.width)
        if class_specific:
            initial = initial.repeat(len(names), 1, 1)
        self.vectors = nn.Parameter(initial.clone())
        self._latest: Tensor | None = None
        self._latest_version = 0

    @property
    def is_class_specific(self) -> bool:
        """Return whether each label has its own context vectors."""
        return self.vectors.ndim == 3

    def forward(self) -> Tensor:
        """Return one unit vector per label, ``(c, d)``."""
        is_stale = self._latest is None or self._latest_version != self.vectors._version
        if self.training or torch.is_grad_enabled() or is_stale:
            self._latest = self._text_encoder.encode(self.vectors)
            self._latest_version = self.vectors._version
        assert self._latest is not None
        return self._latest

    def latest(self) -> Tensor:
        """Return the vectors of the last forward pass, ``(c, d)``, with gradients in training.

        If the vectors of the last forward pass are no longer cached, they are computed.
        """
        return self() if self._latest is None else self._latest

    def encode_for_images(self, contexts: Tensor) -> Tensor:
        """Return one unit vector per image and label, ``(n, c, d)``.

        Args:
            contexts: Context vectors of n images, ``(n, m, w)``.
        """
        return self._text_encoder.encode_for_images(contexts)

    def encode_words(self, words: Sequence[str]) -> Tensor:
        """Return one unit vector per word, with the learned context, ``(k, d)``.

        Raises:
            ConfigError: If the context vectors are class-specific, or the context and a word are
                longer than the text tower allows.
        """
        if self.is_class_specific:
            raise ConfigError(
                "Class-specific context vectors exist only for the labels of the fit; got words "
                "that are not labels. Set method.class_specific=false."
            )
        return self._text_encoder.with_names(words).encode(self.vectors)

    def train(self, mode: bool = True) -> Self:
        """Set training or evaluation mode, and drop the cached vectors."""
        self._latest = None
        return super().train(mode)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        self._latest = None
        super()._load_from_state_dict(*arguments)
