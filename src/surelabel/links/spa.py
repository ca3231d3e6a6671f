"""The link of the strictly proper asymmetric loss."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.links.arrays import in_torch
from surelabel.links.protocol import Values
from surelabel.records import LOGIT_LIMIT

SCORE_LIMIT = 1e30  # beyond it scores count as it, so that the steepest log-odds fit float32
SETTING_LIMIT = 1e6  # of each setting, and its inverse the least scale and slope
STEPS = 80  # of Newton's method or of halving, at most


@dataclass(frozen=True, kw_only=True)
class SPA:
    """Turn the scores of a head trained with the strictly proper asymmetric loss into log-odds.

    Where the expected loss is least, the log-odds of the true probability are

        log-odds = c + softplus(k_pos · (score - b_pos)) - softplus(-k_neg · (score - b_neg))
        c        = log(k_neg · zeta_pos / (k_pos · zeta_neg))

    They rise with every score, by slopes between k_neg far below and k_pos far above.

    Args:
        zeta_pos: What the loss of positives is divided by (zeta+), in [1e-6, 1e6].
        k_pos: Slope of the loss of positives (k+), in [1e-6, 1e6].
        b_pos: Score where the loss of positives bends (b+), in [-1e6, 1e6].
        zeta_neg: What the loss of negatives is divided by (zeta-), in [1e-6, 1e6].
        k_neg: Slope of the loss of negatives (k-), in [1e-6, 1e6].
        b_neg: Score where the loss of negatives bends (b-), in [-1e6, 1e6].

    Raises:
        ConfigError: a setting is out of its range.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        eq. 17.

    Differs:
        The signs inside both sigmoids of eq. 17 are flipped: as printed the link falls where the
        paper says that it rises, and it is not where eq. 16 is stationary. Log-odds are formed
        directly, with no quotient of probabilities, so they are finite for every finite score.

    Example:
        >>> import numpy as np
        >>> SPA().logits(np.array([-1.0, 0.0, 1.0])).round(4)
        array([-6.2   , -2.8663,  0.1093])
    """

    strict: ClassVar[bool] = True

    zeta_pos: float = 1.0
    k_pos: float = 1.0
    b_pos: float = 0.0
    zeta_neg: float = 5.0
    k_neg: float = 3.0
    b_neg: float = 1.0

    def __post_init__(self) -> None:
        for name in ("zeta_pos", "k_pos", "zeta_neg", "k_neg"):
            value = getattr(self, name)
            if not 1 / SETTING_LIMIT <= value <= SETTING_LIMIT:
                raise ConfigError(f"{name} must lie in [1e-6, 1e6], 1 for no effect. Got {value}.")
        for name in ("b_pos", "b_neg"):
            value = getattr(self, name)
            if not -SETTING_LIMIT <= value <= SETTING_LIMIT:
                raise ConfigError(f"{name} must lie in [-1e6, 1e6], 0 for no shift. Got {value}.")

    def log_odds(self, scores: Values) -> Values:
        """Log-odds of scores of any shape; finite for every finite score."""
        return in_torch(self._log_odds, scores)

    def logits(self, scores: Values) -> Values:
        """Log-odds in [-40, 40] of scores of any shape.

        Returns:
            The same kind, Tensor or array; float32, or float64 if the scores were.
        """
        return self.log_odds(scores).clip(-LOGIT_LIMIT, LOGIT_LIMIT)

    def scores(self, logits: Values) -> Values:
        """Scores with these log-odds, limited to [-40, 40]; no gradient goes through them.

        Newton's method, kept inside a shrinking interval that must hold the score.

        Returns:
            The same kind; float32, or float64 if the logits were.
        """
        return in_torch(self._scores, logits)

    def _offset(self) -> float:
        return math.log(self.k_neg * self.zeta_pos) - math.log(self.k_pos * self.zeta_neg)

    def _log_odds(self, scores: Tensor) -> Tensor:
        scores = scores.clip(-SCORE_LIMIT, SCORE_LIMIT)
        rising = -F.logsigmoid(-self.k_pos * (scores - self.b_pos))  # softplus, exact far out
        falling = -F.logsigmoid(self.k_neg * (scores - self.b_neg))
        return self._offset() + rising - falling

    def _slope(self, scores: Tensor) -> Tensor:
        rising = self.k_pos * torch.sigmoid(self.k_pos * (scores - self.b_pos))
        return rising + self.k_neg * torch.sigmoid(-self.k_neg * (scores - self.b_neg))

    def _scores(self, logits: Tensor) -> Tensor:
        wanted = logits.detach().clip(-LOGIT_LIMIT, LOGIT_LIMIT)
        rest = wanted - self._offset()  # softplus is at most log 2 above its two lines
        low = ((rest - math.log(2)) / self.k_neg + self.b_neg).clip(max=self.b_pos)
        high = ((rest + math.log(2)) / self.k_pos + self.b_pos).clip(min=self.b_neg)
        scores = torch.where(rest < 0, rest / self.k_neg + self.b_neg, rest / self.k_pos)
        scores = torch.where(rest < 0, scores, scores + self.b_pos).clip(low, high)
        close = 1e3 * torch.finfo(wanted.dtype).eps  # before the last step
        for _ in range(STEPS):
            excess = self._log_odds(scores) - wanted
            low = torch.where(excess <= 0, scores, low)
            high = torch.where(excess > 0, scores, high)
            newton = scores - excess / self._slope(scores)
            inside = (newton >= low) & (newton <= high)
            scores = torch.where(inside, newton, low + (high - low) / 2)
            if (excess.abs() < close).all():
                break
        return scores
