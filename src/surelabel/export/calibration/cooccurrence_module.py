"""Export the calibration by the co-occurrence of labels."""

from collections.abc import Callable

import numpy as np
import torch
from scipy.special import expit, logit
from torch import Tensor, nn

from surelabel.arrays import LOGIT_LIMIT, Array, Flags
from surelabel.calibration import Cooccurrence
from surelabel.calibration.cooccurrence import MIN_RATE
from surelabel.export.calibration.beta_module import BetaModule, beta_module
from surelabel.export.calibration.float32_steps import first_float32

MIN_SHARE = 1e-30  # lower bound of a share whose logarithm is computed
MAX_SHARE_LOG_ODDS = float(-logit(MIN_RATE))


class CooccurrenceModule(nn.Module):
    """Compute beta calibration, shifted by the labels that are probably positive.

    The probability q of a label given the anchors and its complement 1 - q are computed separately,
    so that no digits are lost if q is close to 1. Anchors are recognized by their input, because a
    rounding error of a probability close to ``anchor_probability`` would add or remove an anchor.

    Args:
        calibrator: Fitted calibration with a strength above 0.
    """

    first_anchor: Tensor
    strength: Tensor
    rates: Tensor
    conditional: Tensor
    other_labels: Tensor
    prior_log_odds: Tensor

    def __init__(self, calibrator: Cooccurrence):
        super().__init__()
        self.shared = beta_module(calibrator.shared_)
        rates = calibrator.rates_
        conditional = rates * np.exp(calibrator.log_ratios_)
        other_labels = 1 - np.eye(len(rates))
        constants = {
            "first_anchor": first_float32(_anchor_condition(calibrator), (1,)),
            "strength": np.array(calibrator.strength_),
            "rates": np.stack([rates, 1 - rates]),
            "conditional": np.stack([conditional, 1 - conditional]) * other_labels,
            "other_labels": other_labels,
            "prior_log_odds": logit(rates),
        }
        for name, values in constants.items():
            self.register_buffer(name, torch.from_numpy(values.astype(np.float32)))

    def forward(self, raw: Tensor, vectors: Tensor | None = None) -> Tensor:
        """Return log-odds, ``(n, c)``, without clipping; image vectors are not used."""
        z: Tensor = self.shared(raw).clamp(-LOGIT_LIMIT, LOGIT_LIMIT)
        is_anchor = raw >= self.first_anchor
        weights = torch.where(is_anchor, z.sigmoid(), 0.0)
        positive, negative = weights @ self.conditional[0], weights @ self.conditional[1]
        rest = self._weight_of_rates(z, is_anchor)
        positive = (positive + rest * self.rates[0]).clamp(min=MIN_SHARE)
        negative = (negative + rest * self.rates[1]).clamp(min=MIN_SHARE)
        log_odds = positive.log() - negative.log()
        log_odds = log_odds.clamp(-MAX_SHARE_LOG_ODDS, MAX_SHARE_LOG_ODDS)
        return z + self.strength * (log_odds - self.prior_log_odds)

    def _weight_of_rates(self, z: Tensor, is_anchor: Tensor) -> Tensor:
        """Return max(0, 1 - sum of the weights of the anchors other than the label), ``(n, c)``.

        The sum is computed as 1 - number of anchors + sum of the complements of their weights. If
        there is one anchor, its complement is therefore precise, also if its weight is almost 1.
        """
        complements = torch.where(is_anchor, 1 / (1 + z.exp()), 0.0) @ self.other_labels
        anchors = is_anchor.to(z.dtype)
        n_others = anchors.sum(dim=1, keepdim=True) - anchors
        return (1 - n_others + complements).clamp(min=0)


def cooccurrence_module(calibrator: Cooccurrence) -> CooccurrenceModule | BetaModule:
    """Return the module of the calibration, or that of beta calibration if the strength is 0."""
    if calibrator.strength_ == 0:
        return beta_module(calibrator.shared_)
    return CooccurrenceModule(calibrator)


def _anchor_condition(calibrator: Cooccurrence) -> Callable[[Array], Flags]:
    """Return the condition on inputs ``(k,)`` under which a label is an anchor."""

    def is_anchor(x: Array) -> Flags:
        probabilities = expit(calibrator.shared_.logits(x[:, None])[:, 0])
        flags: Flags = probabilities > calibrator.anchor_probability
        return flags

    return is_anchor
