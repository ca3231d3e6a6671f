"""What a link can do."""

from typing import Any, ClassVar, Protocol, TypeVar

import numpy.typing as npt
from torch import Tensor

Values = TypeVar("Values", Tensor, npt.NDArray[Any])


class Link(Protocol):
    """A rising map between scores and log-odds, element by element; it has nothing to fit.

    Attributes:
        strict: Whether log-odds rise with a slope everywhere, so that gradients may go through
            ``log_odds`` in training.
    """

    strict: ClassVar[bool]

    def log_odds(self, scores: Values) -> Values:
        """Log-odds without limits, of the same kind and shape as ``scores``."""

    def logits(self, scores: Values) -> Values:
        """Log-odds in [-40, 40], of the same kind and shape as ``scores``."""

    def scores(self, logits: Values) -> Values:
        """A score with these log-odds, of the same kind and shape as ``logits``."""
