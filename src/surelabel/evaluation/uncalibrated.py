"""Compute metrics of the uncalibrated logits, to measure the effect of the calibrator."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import LOGIT_LIMIT, Array, Flags
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.mapped_arrays import to_mapped_array
from surelabel.metrics import PROBABILITY

UNCALIBRATED_METRICS = ("brier_skill", "log_loss", "ece", "ace", "mce")


@dataclass(frozen=True)
class UncalibratedMetrics:
    """Logits of a recognizer without its calibrator, and the metrics of these logits.

    Attributes:
        logits: Uncalibrated log-odds of n images and c labels, in [-40, 40], ``(n, c)``.
        summary: Value of each of ``UNCALIBRATED_METRICS`` over all images and labels, by name.
    """

    logits: Array
    summary: dict[str, float]

    @property
    def probabilities(self) -> Array:
        """Return the sigmoid of the uncalibrated logits, ``(n, c)``."""
        probabilities: Array = expit(self.logits)
        return probabilities


def evaluate_uncalibrated(
    logits: npt.ArrayLike, targets: Array, known: Flags
) -> UncalibratedMetrics:
    """Return the metrics of uncalibrated logits.

    Args:
        logits: Uncalibrated log-odds of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``. Unknown targets are 0.
        known: True where the target is known, ``(n, c)``.

    Raises:
        InputError: If the shapes of ``logits`` and ``targets`` differ, or if a logit is not
            finite.
    """
    log_odds = np.asarray(logits, dtype=np.float64)
    if log_odds.shape != targets.shape:
        raise InputError(
            f"uncalibrated_logits must have the shape of the targets, {targets.shape}; "
            f"got {log_odds.shape}."
        )
    if not np.isfinite(log_odds).all():
        raise InputError(
            "uncalibrated_logits must be finite log-odds; got "
            f"{format_count((~np.isfinite(log_odds)).sum(), 'NaN or infinite value')}. Pass the "
            "output of the link, which is the input of the calibrator."
        )
    metrics = UncalibratedMetrics(to_mapped_array(log_odds.clip(-LOGIT_LIMIT, LOGIT_LIMIT)), {})
    p = metrics.probabilities
    metrics.summary.update(
        {name: PROBABILITY[name](p, targets, known) for name in UNCALIBRATED_METRICS}
    )
    return metrics
