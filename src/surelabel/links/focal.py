"""The link of focal and asymmetric losses, whose scores are not log-odds."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.links.arrays import in_torch
from surelabel.links.protocol import Values
from surelabel.records import LOGIT_LIMIT

SCORE_LIMIT = 60.0  # beyond it every logit has reached its limit, and exp still fits float32
HALVINGS = 64  # of an interval of 120: below the distance of neighbouring float64 numbers
TINY = 1e-4  # below it log(1 - z) / z is a series, exact to 1e-12

Variant = Literal["paper", "code"]


def check_focus(gamma_pos: float, gamma_neg: float, clip: float, variant: str) -> None:
    """Check the settings that the asymmetric loss shares with its link.

    Raises:
        ConfigError: a power is negative or not finite, ``clip`` is outside [0, 1), or
            ``variant`` is neither "paper" nor "code".
    """
    for name, power in (("gamma_pos", gamma_pos), ("gamma_neg", gamma_neg)):
        if not (math.isfinite(power) and power >= 0):
            raise ConfigError(f"{name} must be a finite number >= 0, 0 for no focus. Got {power}.")
    if not 0 <= clip < 1:
        raise ConfigError(f"clip must lie in [0, 1), 0 for none. Got {clip}.")
    if variant not in ("paper", "code"):
        raise ConfigError(
            f'variant must be "paper" (gradient through the focusing weights) or "code" (none). '
            f"Got {variant!r}."
        )


@dataclass(frozen=True, kw_only=True)
class Focal:
    """Recover log-odds from the scores of a head trained with an asymmetric or focal loss.

    The sigmoid q of such a score is not the probability; where the expected loss is least,
    the probability is

        phi(q) = h(u; gamma_neg) / (h(u; gamma_neg) + h(1 - q; gamma_pos)),  u = max(q - clip, 0)
        h(z; g) = z^g · (1 / (1 - z) - g · log(1 - z) / z)      variant "paper"
        h(z; g) = z^g / (1 - z)                                 variant "code"

    and the logit is log(phi / (1 - phi)), worked out without ever forming phi.

    Args:
        gamma_pos: Focusing power of positives in the loss (gamma+), >= 0.
        gamma_neg: Focusing power of negatives in the loss (gamma-), >= 0.
        clip: Probability below which a negative cost nothing (m), in [0, 1).
        variant: "paper" where the gradient went through the focusing weights, "code" where they
            were constants. It must be the variant of the loss that trained the head.

    Raises:
        ConfigError: a setting is out of its range.

    Source:
        "paper": Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks,
        CVPR 2024, eq. 14 and 15. "code": ours, the same derivation with constant weights.

    Differs:
        Scores count inside [-60, 60] and logits inside [-40, 40], so every finite score has a
        finite logit. With ``clip`` > 0 all scores whose sigmoid is at most ``clip`` get -40: let
        the raw scores break those ties; with ``gamma_neg`` = 0 the logits jump there. With
        ``clip`` > 0 and ``gamma_pos`` = 0 they stop at a level below 40 however large the score.
        Heads trained with the released code of the asymmetric loss, whose weights are constants,
        need "code"; the paper knows "paper" only.

    Example:
        >>> import numpy as np
        >>> Focal(clip=0.0).logits(np.array([-1.0, 0.0, 1.0])).round(4)
        array([-4.77  , -1.4448,  0.8228])
    """

    strict: ClassVar[bool] = False

    gamma_pos: float = 0.0
    gamma_neg: float = 4.0
    clip: float = 0.05
    variant: Variant = "paper"

    def __post_init__(self) -> None:
        check_focus(self.gamma_pos, self.gamma_neg, self.clip, self.variant)

    def log_odds(self, scores: Values) -> Values:
        """Log-odds of scores of any shape, without limits: -inf where a negative cost nothing."""
        return in_torch(self._log_odds, scores)

    def logits(self, scores: Values) -> Values:
        """Log-odds in [-40, 40] of scores of any shape; they never fall but by rounding.

        Returns:
            The same kind, Tensor or array; float32, or float64 if the scores were.
        """
        return self.log_odds(scores).clip(-LOGIT_LIMIT, LOGIT_LIMIT)

    def scores(self, logits: Values) -> Values:
        """Scores with these log-odds, found by bisection; the inverse of ``logits``.

        Returns:
            The same kind, inside [-60, 60]: the greatest score whose logit is not above the one
            asked for, which is the corner of the clip for -40 and 60 for what none reaches.
        """
        return in_torch(self._scores, logits)

    def _log_odds(self, scores: Tensor) -> Tensor:
        x = scores.clip(-SCORE_LIMIT, SCORE_LIMIT)
        corner = math.log(self.clip / (1 - self.clip)) if self.clip > 0 else -math.inf
        kept = x > corner
        x = torch.where(kept, x, max(corner, 0.0) + 1.0)  # stands in where a negative was clipped
        log_q, log_not_q = F.logsigmoid(x), F.logsigmoid(-x)
        # q - clip = q · (1 - clip) · (1 - exp(corner - x)), without cancellation
        log_u = log_q + math.log1p(-self.clip) + torch.log(-torch.expm1(corner - x))
        not_u = log_not_q.exp() + self.clip
        log_odds = self._log_h(log_u, not_u, self.gamma_neg)
        log_odds = log_odds - self._log_h(log_not_q, log_q.exp(), self.gamma_pos)
        return torch.where(kept, log_odds, -torch.inf)

    def _log_h(self, log_z: Tensor, not_z: Tensor, gamma: float) -> Tensor:
        """Log of h at z, from log z and 1 - z, each exact where the other is near 1."""
        if self.variant == "code":
            return gamma * log_z - not_z.log()
        z = log_z.exp()
        small = z < 0.5
        log_not_z = torch.where(small, torch.log1p(-torch.where(small, z, 0.0)), not_z.log())
        tiny = z < TINY  # a gradient divides by its square, which float32 may not hold
        quotient = torch.where(tiny, -(1 + z / 2 + z**2 / 3), log_not_z / torch.where(tiny, 1.0, z))
        return gamma * log_z - not_z.log() + torch.log1p(-gamma * not_z * quotient)

    def _scores(self, logits: Tensor) -> Tensor:
        wanted = logits.clip(-LOGIT_LIMIT, LOGIT_LIMIT)
        low, high = torch.full_like(wanted, -SCORE_LIMIT), torch.full_like(wanted, SCORE_LIMIT)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            reached = self._log_odds(middle).clip(-LOGIT_LIMIT, LOGIT_LIMIT) <= wanted
            low, high = torch.where(reached, middle, low), torch.where(reached, high, middle)
        return low
