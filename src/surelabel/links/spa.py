"""Convert scores of heads trained with the strictly proper asymmetric loss to log-odds."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.arrays import LOGIT_LIMIT
from surelabel.errors import ConfigError
from surelabel.links.conversion.numpy_conversion import apply_with_numpy_conversion
from surelabel.links.interface import ArrayOrTensor

SCORE_LIMIT = 1e30  # scores are clipped to it, so that log-odds do not overflow float32
SETTING_LIMIT = 1e6  # largest setting; its inverse is the smallest scale and slope
MAX_STEPS = 80  # limit of the steps of Newton's method and bisection
EXPORTED_STEPS = 20  # fixed number in an exported program; sufficient for scales in [0.01, 100]


@dataclass(frozen=True, kw_only=True)
class SPA:
    """Convert the scores of a head trained with the strictly proper asymmetric loss to log-odds.

    If the score minimizes the expected loss, the log-odds of the true probability are

        log-odds = c + softplus(k_pos · (score - b_pos)) - softplus(-k_neg · (score - b_neg))
        c        = log(k_neg · zeta_pos / (k_pos · zeta_neg))

    The log-odds increase with the score. The slope of the log-odds is k_neg for very low scores
    and k_pos for very high scores.

    Args:
        zeta_pos: Divisor of the loss of positives (zeta+), in [1e-6, 1e6].
        k_pos: Factor of the score in the loss of positives (k+), in [1e-6, 1e6].
        b_pos: Offset of the score in the loss of positives (b+), in [-1e6, 1e6].
        zeta_neg: Divisor of the loss of negatives (zeta-), in [1e-6, 1e6].
        k_neg: Factor of the score in the loss of negatives (k-), in [1e-6, 1e6].
        b_neg: Offset of the score in the loss of negatives (b-), in [-1e6, 1e6].

    Raises:
        ConfigError: If a setting is outside the allowed range.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        eq. 17.

    Differs:
        The signs inside both sigmoids of eq. 17 are flipped. With the printed signs, the link
        decreases with the score, although Cheng and Vasconcelos state that the link increases.
        Log-odds are computed without a quotient of probabilities, so every finite score has finite
        log-odds.

    Example:
        >>> import numpy as np
        >>> SPA().logits(np.array([-1.0, 0.0, 1.0])).round(4)
        array([-6.2   , -2.8663,  0.1093])
    """

    is_strictly_increasing: ClassVar[bool] = True

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
                raise ConfigError(
                    f"{name} must be in [1e-6, 1e6]; got {value}. Use 1 for no effect."
                )
        for name in ("b_pos", "b_neg"):
            value = getattr(self, name)
            if not -SETTING_LIMIT <= value <= SETTING_LIMIT:
                raise ConfigError(
                    f"{name} must be in [-1e6, 1e6]; got {value}. Use 0 for no offset."
                )

    def log_odds(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Return unclipped log-odds, which are finite for every finite score."""
        return apply_with_numpy_conversion(self._torch_log_odds, scores)

    def logits(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Return log-odds clipped to [-40, 40].

        Returns:
            Logits of the shape of ``scores``, as a tensor or array like ``scores``. The type is
            float64 if ``scores`` is float64, else float32.
        """
        return self.log_odds(scores).clip(-LOGIT_LIMIT, LOGIT_LIMIT)

    def scores(self, logits: ArrayOrTensor) -> ArrayOrTensor:
        """Return the scores whose log-odds are ``logits`` clipped to [-40, 40], without a gradient.

        The scores are computed by Newton's method. If a Newton step leaves the interval that
        contains the solution, a bisection step replaces the Newton step. In a program of
        ``torch.export``, the number of steps is 20.

        Returns:
            Scores of the shape of ``logits``, as a tensor or array like ``logits``. The type is
            float64 if ``logits`` is float64, else float32.
        """
        return apply_with_numpy_conversion(self._torch_scores, logits)

    def _log_odds_offset(self) -> float:
        return math.log(self.k_neg * self.zeta_pos) - math.log(self.k_pos * self.zeta_neg)

    def _torch_log_odds(self, scores: Tensor) -> Tensor:
        scores = scores.clip(-SCORE_LIMIT, SCORE_LIMIT)
        # softplus(x) = -logsigmoid(-x), which is exact in the tails
        softplus_pos = -F.logsigmoid(-self.k_pos * (scores - self.b_pos))
        softplus_neg = -F.logsigmoid(self.k_neg * (scores - self.b_neg))
        return self._log_odds_offset() + softplus_pos - softplus_neg

    def _log_odds_slope(self, scores: Tensor) -> Tensor:
        slope_pos = self.k_pos * torch.sigmoid(self.k_pos * (scores - self.b_pos))
        slope_neg = self.k_neg * torch.sigmoid(-self.k_neg * (scores - self.b_neg))
        return slope_pos + slope_neg

    def _torch_scores(self, logits: Tensor) -> Tensor:
        clipped = logits.detach().clip(-LOGIT_LIMIT, LOGIT_LIMIT)
        shifted = (
            clipped - self._log_odds_offset()
        )  # softplus exceeds its asymptotes by at most log 2
        low = ((shifted - math.log(2)) / self.k_neg + self.b_neg).clip(max=self.b_pos)
        high = ((shifted + math.log(2)) / self.k_pos + self.b_pos).clip(min=self.b_neg)
        scores = torch.where(shifted < 0, shifted / self.k_neg + self.b_neg, shifted / self.k_pos)
        scores = torch.where(shifted < 0, scores, scores + self.b_pos).clip(low, high)
        tolerance = 1e3 * torch.finfo(clipped.dtype).eps  # before the last step
        is_exporting = torch.compiler.is_exporting()  # a program cannot depend on the values
        for _ in range(EXPORTED_STEPS if is_exporting else MAX_STEPS):
            excess = self._torch_log_odds(scores) - clipped
            low = torch.where(excess <= 0, scores, low)
            high = torch.where(excess > 0, scores, high)
            newton = scores - excess / self._log_odds_slope(scores)
            is_inside = (newton >= low) & (newton <= high)
            scores = torch.where(is_inside, newton, low + (high - low) / 2)
            if not is_exporting and (excess.abs() < tolerance).all():
                break
        return scores
