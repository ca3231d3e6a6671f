"""The link of a head whose scores already are log-odds."""

from dataclasses import dataclass
from typing import ClassVar

from surelabel.links.arrays import in_torch
from surelabel.links.protocol import Values
from surelabel.records import LOGIT_LIMIT


@dataclass(frozen=True)
class Sigmoid:
    """Take scores as log-odds: the probability is their sigmoid.

        logit = score, kept inside [-40, 40]

    Source:
        The canonical link of binary cross-entropy; Buja, Stuetzle and Shen, Loss Functions for
        Binary Class Probability Estimation and Classification, 2005.

    Example:
        >>> import numpy as np
        >>> Sigmoid().logits(np.array([-1000.0, 0.5]))
        array([-40. ,   0.5])
    """

    strict: ClassVar[bool] = True

    def log_odds(self, scores: Values) -> Values:
        """The scores themselves, wherever they are; Tensor or array, any shape."""
        return in_torch(lambda x: x, scores)

    def logits(self, scores: Values) -> Values:
        """The scores themselves, inside [-40, 40]; Tensor or array, any shape."""
        return in_torch(lambda x: x.clip(-LOGIT_LIMIT, LOGIT_LIMIT), scores)

    def scores(self, logits: Values) -> Values:
        """The logits themselves, inside [-40, 40]; Tensor or array, any shape."""
        return self.logits(logits)
