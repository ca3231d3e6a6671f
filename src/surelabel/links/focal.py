"""Convert scores of heads that were trained with the focal or asymmetric loss to log-odds."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.arrays import LOGIT_LIMIT
from surelabel.errors import ConfigError
from surelabel.links.conversion.numpy_conversion import apply_with_numpy_conversion
from surelabel.links.interface import ArrayOrTensor

SCORE_LIMIT = 60.0  # larger scores have clipped logits; exp(60) does not overflow float32
BISECTION_STEPS = 64  # 120 / 2^64 is below the spacing of float64 numbers
SERIES_LIMIT = 1e-4  # for smaller z, log(1 - z) / z is a series, exact to 1e-12

FocalVariant = Literal["paper", "code"]


def check_focal_link_settings(
    gamma_pos: float, gamma_neg: float, clip: float, variant: str
) -> None:
    """Check the settings that the asymmetric loss shares with the focal link.

    Raises:
        ConfigError: If ``gamma_pos`` or ``gamma_neg`` is negative or not finite, ``clip`` is
            outside [0, 1), or ``variant`` is neither "paper" nor "code".
    """
    for name, power in (("gamma_pos", gamma_pos), ("gamma_neg", gamma_neg)):
        if not (math.isfinite(power) and power >= 0):
            raise ConfigError(
                f"{name} must be a finite number >= 0; got {power}. Use 0 for no focusing."
            )
    if not 0 <= clip < 1:
        raise ConfigError(f"clip must be in [0, 1); got {clip}. Use 0 for no clipping.")
    if variant not in ("paper", "code"):
        raise ConfigError(
            f'variant must be "paper" (gradients through the focusing weights) or "code" '
            f"(constant focusing weights); got {variant!r}."
        )


@dataclass(frozen=True, kw_only=True)
class Focal:
    """Convert the scores of a head trained with an asymmetric or focal loss to log-odds.

    The sigmoid q of a score of such a head is not the probability of a positive. If the score
    minimizes the expected loss, the probability of a positive is phi(q):

        phi(q) = h(u; gamma_neg) / (h(u; gamma_neg) + h(1 - q; gamma_pos)),  u = max(q - clip, 0)
        h(z; g) = z^g · (1 / (1 - z) - g · log(1 - z) / z)      variant "paper"
        h(z; g) = z^g / (1 - z)                                 variant "code"

    The link returns the log-odds log(phi / (1 - phi)), which are computed in log space.

    Args:
        gamma_pos: Focusing parameter (exponent) of positives in the loss (gamma+), >= 0.
        gamma_neg: Focusing parameter (exponent) of negatives in the loss (gamma-), >= 0.
        clip: Threshold (m), in [0, 1). If sigmoid(score) is at most ``clip``, the loss of a
            negative is 0.
        variant: "paper" if the training loss propagated gradients through the focusing weights,
            "code" if the training loss treated the focusing weights as constants.

    Raises:
        ConfigError: If a setting is outside the allowed range.

    Source:
        "paper": Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks,
        CVPR 2024, eq. 14 and 15. "code": ours, by the same derivation with constant weights.

    Differs:
        Scores are clipped to [-60, 60] and logits to [-40, 40], so every finite score has a
        finite logit. If ``clip`` > 0, all scores whose sigmoid is at most ``clip`` have the logit
        -40. To rank images with this logit, use the scores. If ``clip`` > 0 and ``gamma_neg`` = 0,
        the logits are discontinuous at the score whose sigmoid is ``clip``. If ``clip`` > 0 and
        ``gamma_pos`` = 0, the logits have an upper bound below 40. The released code of the
        asymmetric loss uses constant focusing weights, so heads trained with that code need the
        variant "code". Cheng and Vasconcelos describe the variant "paper" only.

    Example:
        >>> import numpy as np
        >>> Focal(clip=0.0).logits(np.array([-1.0, 0.0, 1.0])).round(4)
        array([-4.77  , -1.4448,  0.8228])
    """

    is_strictly_increasing: ClassVar[bool] = False

    gamma_pos: float = 0.0
    gamma_neg: float = 4.0
    clip: float = 0.05
    variant: FocalVariant = "paper"

    def __post_init__(self) -> None:
        check_focal_link_settings(self.gamma_pos, self.gamma_neg, self.clip, self.variant)

    def log_odds(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Return unclipped log-odds, which are -inf for scores with sigmoid <= ``clip``."""
        return apply_with_numpy_conversion(self._torch_log_odds, scores)

    def logits(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Return log-odds clipped to [-40, 40], which do not decrease with the score.

        Rounding errors can cause small decreases, such as 1e-15 in float64.

        Returns:
            Logits of the shape of ``scores``, as a tensor or array like ``scores``. The type is
            float64 if ``scores`` is float64, else float32.
        """
        return self.log_odds(scores).clip(-LOGIT_LIMIT, LOGIT_LIMIT)

    def scores(self, logits: ArrayOrTensor) -> ArrayOrTensor:
        """Return the scores whose logits are ``logits``, computed by bisection.

        Returns:
            For each logit, the largest score in [-60, 60] whose logit does not exceed this logit.
            If the logit is at least 40, or above the logits of all scores, the score is 60.
        """
        return apply_with_numpy_conversion(self._torch_scores, logits)

    def _torch_log_odds(self, scores: Tensor) -> Tensor:
        x = scores.clip(-SCORE_LIMIT, SCORE_LIMIT)
        corner = math.log(self.clip / (1 - self.clip)) if self.clip > 0 else -math.inf
        is_above_clip = x > corner
        x = torch.where(is_above_clip, x, max(corner, 0.0) + 1.0)  # placeholder for clipped scores
        log_q, log_not_q = F.logsigmoid(x), F.logsigmoid(-x)
        # q - clip = q · (1 - clip) · (1 - exp(corner - x)), without cancellation
        log_u = log_q + math.log1p(-self.clip) + torch.log(-torch.expm1(corner - x))
        not_u = log_not_q.exp() + self.clip
        log_odds = self._log_h(log_u, not_u, self.gamma_neg)
        log_odds = log_odds - self._log_h(log_not_q, log_q.exp(), self.gamma_pos)
        return torch.where(is_above_clip, log_odds, -torch.inf)

    def _log_h(self, log_z: Tensor, not_z: Tensor, gamma: float) -> Tensor:
        """Return log h(z), the term of the link formula, from log z and 1 - z."""
        if self.variant == "code":
            return gamma * log_z - not_z.log()
        z = log_z.exp()
        is_small = z < 0.5
        log_not_z = torch.where(is_small, torch.log1p(-torch.where(is_small, z, 0.0)), not_z.log())
        use_series = z < SERIES_LIMIT  # the gradient divides by z^2, which underflows in float32
        series = -(1 + z / 2 + z**2 / 3)
        quotient = torch.where(use_series, series, log_not_z / torch.where(use_series, 1.0, z))
        return gamma * log_z - not_z.log() + torch.log1p(-gamma * not_z * quotient)

    def _torch_scores(self, logits: Tensor) -> Tensor:
        clipped = logits.clip(-LOGIT_LIMIT, LOGIT_LIMIT)
        low, high = torch.full_like(clipped, -SCORE_LIMIT), torch.full_like(clipped, SCORE_LIMIT)
        for _ in range(BISECTION_STEPS):
            middle = (low + high) / 2
            is_below = self._torch_log_odds(middle).clip(-LOGIT_LIMIT, LOGIT_LIMIT) <= clipped
            low, high = torch.where(is_below, middle, low), torch.where(is_below, high, middle)
        return low
