"""Define the link of a head whose scores are log-odds."""

from dataclasses import dataclass
from typing import ClassVar

from surelabel.arrays import LOGIT_LIMIT
from surelabel.links.conversion.numpy_conversion import apply_with_numpy_conversion
from surelabel.links.interface import ArrayOrTensor


@dataclass(frozen=True)
class Sigmoid:
    """Use the scores of a head as log-odds, so that the sigmoid of a score is the probability.

        logit = min(max(score, -40), 40)

    Source:
        Buja, Stuetzle and Shen, Loss Functions for Binary Class Probability Estimation and
        Classification, 2005: the sigmoid is the canonical link of binary cross-entropy.

    Example:
        >>> import numpy as np
        >>> Sigmoid().logits(np.array([-1000.0, 0.5]))
        array([-40. ,   0.5])
    """

    is_strictly_increasing: ClassVar[bool] = True

    def log_odds(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Return the scores unchanged, in float32 or float64."""
        return apply_with_numpy_conversion(lambda x: x, scores)

    def logits(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Return the scores clipped to [-40, 40], in float32 or float64."""
        return apply_with_numpy_conversion(lambda x: x.clip(-LOGIT_LIMIT, LOGIT_LIMIT), scores)

    def scores(self, logits: ArrayOrTensor) -> ArrayOrTensor:
        """Return the logits clipped to [-40, 40] as scores, in float32 or float64."""
        return self.logits(logits)
