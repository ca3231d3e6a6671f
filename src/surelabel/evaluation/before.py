"""The same decisions before the calibrator, so that its worth can be seen."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.errors import InputError
from surelabel.metrics import PROBABILITY
from surelabel.records import LOGIT_LIMIT, Array, Flags

COMPARED = ("brier_skill", "log_loss", "ece", "ace", "mce")


@dataclass(frozen=True)
class Before:
    """What a recognizer would have claimed without its calibrator.

    Attributes:
        logits: Its log-odds, in [-40, 40], ``(n, c)``.
        summary: Metric → pooled value, for ``COMPARED``.
    """

    logits: Array
    summary: dict[str, float]

    @property
    def probabilities(self) -> Array:
        """Sigmoid of the logits, ``(n, c)``."""
        probabilities: Array = expit(self.logits)
        return probabilities


def judged_before(logits: npt.ArrayLike, targets: Array, known: Flags) -> Before:
    """Judge log-odds that no calibrator has touched.

    Args:
        logits: Log-odds before calibration, ``(n, c)``.
        targets: The truth, ``(n, c)``.
        known: What is known of it, ``(n, c)``.

    Raises:
        InputError: ``logits`` has another shape than ``targets``, or is not finite.
    """
    given = np.asarray(logits, dtype=np.float64)
    if given.shape != targets.shape:
        raise InputError(
            f"before must be the log-odds of the same pictures and labels, {targets.shape}. "
            f"Got {given.shape}."
        )
    if not np.isfinite(given).all():
        raise InputError(
            f"before must be finite log-odds. Got {(~np.isfinite(given)).sum():,} that are not: "
            "give what the link gives, before the calibrator."
        )
    before = Before(given.clip(-LOGIT_LIMIT, LOGIT_LIMIT), {})
    p = before.probabilities
    before.summary.update({name: PROBABILITY[name](p, targets, known) for name in COMPARED})
    return before
