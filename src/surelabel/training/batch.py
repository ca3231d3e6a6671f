"""What a source gives the loop."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from surelabel.errors import InputError
from surelabel.records import Features


@dataclass(frozen=True)
class Batch:
    """Features of some pictures with their targets ``(n, c)`` and what is known of them."""

    features: Features
    targets: Tensor
    known: Tensor


class Source(Protocol):
    """Where training steps come from; a source may own parameters of its own."""

    def parameters(self) -> list[nn.Parameter]:
        """Parameters to train beside the method's."""

    def batches(self, generator: torch.Generator) -> Iterator[Batch]:
        """One pass."""

    def __len__(self) -> int:
        """Batches a pass."""


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
