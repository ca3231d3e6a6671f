"""Histogram binning."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.calibration.checked import checked_amount, checked_state, known_decisions
from surelabel.calibration.estimator import Estimator
from surelabel.calibration.protocol import Order
from surelabel.errors import ConfigError, DataError
from surelabel.records import LOGIT_LIMIT, Array


class Histogram(Estimator):
    """Give every probability the share of present labels among those that were about as high.

        p' = (present_b + m · p) / (count_b + m)      b = the bin of p, m = ``pseudo_count``

    A bin with many decisions answers with its share, an empty one leaves p as it is. Inside a bin
    the old order breaks ties; from bin to bin order may turn round.

    Args:
        bins: Bins of equal width on [0, 1], the last one closed, >= 1.
        pseudo_count: How many decisions the old probability weighs. Above 0.

    Attributes:
        present_: Known labels that are present, of every bin, ``(bins,)``.
        counts_: Known labels of every bin, ``(bins,)``.

    Source:
        Zadrozny and Elkan, Obtaining Calibrated Probability Estimates from Decision Trees and
        Naive Bayesian Classifiers, ICML 2001; bins of equal width as in Guo et al., On
        Calibration of Modern Neural Networks, ICML 2017, arXiv:1706.04599.

    Differs:
        All labels share the bins. The pseudo-count is ours: it keeps the log loss finite and
        answers for empty bins, which netcal gives their middle.

    Example:
        >>> found = Histogram(bins=2).fit([[-1.0], [-1.0], [-1.0], [2.0]], [[0], [1], [0], [1]])
        >>> found.predict_proba([[-1.0], [2.0]]).round(4)
        array([[0.3172],
               [0.9404]])
    """

    keeps_order: ClassVar[Order] = "no"
    sets_level: ClassVar[bool] = False
    shared: ClassVar[bool] = True

    def __init__(self, *, bins: int = 15, pseudo_count: float = 1.0) -> None:
        self.bins, self.pseudo_count = bins, pseudo_count
        self._check_settings()

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Count held-out decisions.

        Args:
            logits: Log-odds, ``(n, c)``, finite.
            targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
            known: True where the target is known, ``(n, c)``; all of them when left out.

        Raises:
            InputError: a value is not what it must be, or no decision is present, or none absent.
        """
        x, y = known_decisions(logits, targets, known)
        bins = _bins(expit(x), self.bins)
        self.counts_ = np.bincount(bins, minlength=self.bins).astype(np.float64)
        self.present_ = np.bincount(bins, weights=y, minlength=self.bins).astype(np.float64)
        self.weight_ = float(self.pseudo_count)
        return self

    def state(self) -> dict[str, Any]:
        """The counts of every bin and the pseudo-count, ready for JSON."""
        self._check_fitted()
        return {
            "present": self.present_.tolist(),
            "counts": self.counts_.tolist(),
            "pseudo_count": self.weight_,
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Take counts back from ``state``."""
        found = checked_state(state, present="b", counts="b", pseudo_count="")
        present, counts, weight = found["present"], found["counts"], float(found["pseudo_count"])
        if (present < 0).any() or (present > counts * (1 + 1e-9)).any() or weight <= 0:
            raise DataError(
                "A saved histogram must have 0 <= present <= counts in every bin and a "
                f"pseudo_count above 0. Got {present.tolist()}, {counts.tolist()} and {weight}; "
                "calibrate again."
            )
        self.present_, self.counts_, self.weight_ = present, counts, weight
        return self

    def _log_odds(self, x: Array) -> Array:
        x = np.clip(x, -LOGIT_LIMIT, LOGIT_LIMIT)
        p = expit(x)
        bins = _bins(p, len(self.counts_))
        absent = np.maximum(self.counts_ - self.present_, 0)
        present = self.present_[bins] + self.weight_ * p
        odds: Array = np.log(present) - np.log(absent[bins] + self.weight_ * expit(-x))
        return odds

    def _check_settings(self) -> None:
        if not float(self.bins).is_integer() or self.bins < 1:
            raise ConfigError(f"bins must be a whole number of at least 1. Got {self.bins}.")
        checked_amount("pseudo_count", self.pseudo_count)


def _bins(p: Array, count: int) -> npt.NDArray[np.int64]:
    """The bin of every probability, from 0."""
    return np.minimum((p * count).astype(np.int64), count - 1)
