"""This module defines histogram binning."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import LOGIT_LIMIT, Array
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.input_validation import (
    check_positive_calibrator_setting,
    validate_and_flatten_calibration_data,
    validate_calibrator_state,
)
from surelabel.calibration.interface import OrderPreservation
from surelabel.errors import ConfigError, DataError
from surelabel.mapped_arrays import CACHED_BYTES, row_blocks


class Histogram(BaseCalibrator):
    """Histogram binning: replace a probability by the fraction of positives in its bin.

        p' = (positive_b + m · p) / (count_b + m)      b = the bin of p, m = ``pseudo_count``

    Here p is the uncalibrated probability, and p' is the calibrated probability. The symbols
    positive_b and count_b are the numbers of positives and of known targets in bin b. In a bin with
    many known targets, p' is close to the fraction of positives. In an empty bin, p' equals p. The
    order of probabilities is preserved inside a bin, but may change between bins.

    Args:
        bins: Number of bins of equal width on [0, 1], >= 1. The last bin includes probability 1.
        pseudo_count: Weight of the uncalibrated probability, as a number of targets, above 0.

    Attributes:
        positives_: Number of positives among the known targets in each bin, ``(bins,)``.
        counts_: Number of known targets in each bin, ``(bins,)``.
        weight_: Pseudo-count m at the time of the fit.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        Zadrozny and Elkan, Obtaining Calibrated Probability Estimates from Decision Trees and
        Naive Bayesian Classifiers, ICML 2001; bins of equal width as in Guo et al., On
        Calibration of Modern Neural Networks, ICML 2017, arXiv:1706.04599.

    Differs:
        All labels share the bins. The pseudo-count is ours and keeps the log loss finite. In an
        empty bin, the probability does not change, whereas the library netcal returns the bin
        centre.

    Example:
        >>> x, y = [[-1.0], [-1.0], [-1.0], [2.0]], [[0], [1], [0], [1]]
        >>> calibrator = Histogram(bins=2).fit(x, y)
        >>> calibrator.predict_proba([[-1.0], [2.0]]).round(4)
        array([[0.3172],
               [0.9404]])
    """

    keeps_order: ClassVar[OrderPreservation] = "no"
    accepts_raw_scores: ClassVar[bool] = False
    shares_parameters: ClassVar[bool] = True

    def __init__(self, *, bins: int = 15, pseudo_count: float = 1.0) -> None:
        self.bins, self.pseudo_count = bins, pseudo_count
        self._check_settings()

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Count the known targets and the positives in each bin of the held-out data.

        Args:
            logits: Finite log-odds of n images and c labels, ``(n, c)``.
            targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
            known: True where the target is known, ``(n, c)``. If None, all targets except
                NaN are known.

        Returns:
            The fitted calibrator.

        Raises:
            InputError: If the shapes differ, if a logit is not finite, if a known target is outside
                [0, 1], or if the known targets contain no positive or no negative target.
        """
        x, y = validate_and_flatten_calibration_data(logits, targets, known)
        bins = np.empty(x.shape, dtype=np.intp)
        for block in row_blocks(x, n_bytes=CACHED_BYTES):
            bins[block] = _histogram_bin_indices(expit(x[block]), self.bins)
        self.counts_ = np.bincount(bins, minlength=self.bins).astype(np.float64)
        self.positives_ = np.bincount(bins, weights=y, minlength=self.bins).astype(np.float64)
        self.weight_ = float(self.pseudo_count)
        return self

    def state(self) -> dict[str, Any]:
        """Return the counts of every bin and the pseudo-count as a JSON-compatible dict."""
        self._check_fitted()
        return {
            "present": self.positives_.tolist(),
            "counts": self.counts_.tolist(),
            "pseudo_count": self.weight_,
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the counts of the bins from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        arrays = validate_calibrator_state(state, present="b", counts="b", pseudo_count="")
        positives, counts, weight = (
            arrays["present"],
            arrays["counts"],
            float(arrays["pseudo_count"]),
        )
        if (positives < 0).any() or (positives > counts * (1 + 1e-9)).any() or weight <= 0:
            raise DataError(
                "A saved histogram must have 0 <= present <= counts in every bin and a "
                f"pseudo_count above 0; got {positives.tolist()}, {counts.tolist()} and {weight}. "
                "Calibrate again."
            )
        self.positives_, self.counts_, self.weight_ = positives, counts, weight
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        x = np.clip(x, -LOGIT_LIMIT, LOGIT_LIMIT)
        p = expit(x)
        bins = _histogram_bin_indices(p, len(self.counts_))
        negatives = np.maximum(self.counts_ - self.positives_, 0)
        numerator = self.positives_[bins] + self.weight_ * p
        log_odds: Array = np.log(numerator) - np.log(negatives[bins] + self.weight_ * expit(-x))
        return log_odds

    def _check_settings(self) -> None:
        if not float(self.bins).is_integer() or self.bins < 1:
            raise ConfigError(f"bins must be a whole number of at least 1; got {self.bins}.")
        check_positive_calibrator_setting("pseudo_count", self.pseudo_count)


def _histogram_bin_indices(p: Array, count: int) -> npt.NDArray[np.int64]:
    """Return the index of the equal-width bin of every probability, counted from 0."""
    return np.minimum((p * count).astype(np.int64), count - 1)
