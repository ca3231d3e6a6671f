"""What a source gives the loop."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from surelabel.errors import InputError
from surelabel.records import Features


@dataclass(frozen=True)
class Batch:
    """Features of some pictures with their targets.

    Attributes:
        features: Of ``n`` pictures.
        targets: In [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        weights: What each picture counts in a loss of elements, ``(n,)``; alike when left out.
    """

    features: Features
    targets: Tensor
    known: Tensor
    weights: Tensor | None = None


class Source(Protocol):
    """Where training steps come from; a source may own parameters of its own."""

    def parameters(self) -> list[nn.Parameter]:
        """Parameters to train beside the method's."""

    def batches(self, generator: torch.Generator, skip: int = 0) -> Iterator[Batch]:
        """One pass, without its first ``skip`` batches; these cost nothing.

        ``generator`` is asked at the beginning only, and chance comes from nowhere else.
        """

    def __len__(self) -> int:
        """Batches a pass."""


@runtime_checkable
class LearningSource(Source, Protocol):
    """A source whose targets learn from what the method says of them."""

    def learn(self, batch: Any, scores: Tensor) -> None:
        """Take in the scores ``(n, c)`` of one of its batches, after the step that it made."""

    def state_dict(self) -> dict[str, Any]:
        """What a stopped run goes on from."""

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Go on from there."""


def check_known(known: Tensor) -> None:
    """Refuse labels of which none is known.

    Raises:
        InputError: there is nothing to fit on.
    """
    if not known.any():
        raise InputError(
            f"Fitting needs known labels; of {known.numel()} there is none. "
            "Check that the label file and the names agree."
        )
