"""Define the interface of a link, the map between the scores of a head and log-odds."""

from typing import Any, ClassVar, Protocol, TypeVar

import numpy.typing as npt
from torch import Tensor

ArrayOrTensor = TypeVar("ArrayOrTensor", Tensor, npt.NDArray[Any])


class Link(Protocol):
    """Map each score to its log-odds, without fitted parameters.

    The log-odds do not decrease if the score increases.

    Attributes:
        is_strictly_increasing: True if the log-odds have a positive slope at every score, so that
            gradients can be propagated through ``log_odds`` in training.
    """

    is_strictly_increasing: ClassVar[bool]

    def log_odds(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Return the unclipped log-odds as a tensor or array of the shape of ``scores``."""

    def logits(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Return the log-odds clipped to [-40, 40], with the shape of ``scores``."""

    def scores(self, logits: ArrayOrTensor) -> ArrayOrTensor:
        """Return the scores whose log-odds are ``logits``, with the shape of ``logits``."""
