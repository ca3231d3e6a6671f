"""This module defines Platt scaling."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, logit

from surelabel.arrays import Array
from surelabel.blas_threads import single_blas_thread
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.input_validation import (
    validate_and_flatten_calibration_data,
    validate_calibrator_state,
)
from surelabel.calibration.fitting.target_smoothing import (
    interpolate_smoothed_targets,
    smooth_targets,
    smoothed_target_levels,
)
from surelabel.calibration.interface import OrderPreservation
from surelabel.errors import DataError
from surelabel.mapped_arrays import CACHED_BYTES, row_blocks

MIN_SLOPE = 1e-3  # lower bound of the slope, for scores of standard deviation 1


class Platt(BaseCalibrator):
    """Platt scaling: one slope and one shift for all logits or raw scores.

        logit = a · x + b,   a > 0

    Here x is the input logit or raw score, logit is the calibrated logit, a is the slope, and b is
    the shift. The slope and the shift maximize the likelihood.

    Attributes:
        slope_: Fitted slope a, at least 0.001 divided by the standard deviation of x. The bound
            preserves the order even if maximum likelihood would reverse the order. If all x are
            equal, the slope is 1.
        shift_: Fitted shift b.

    Source:
        Platt, Probabilistic Outputs for Support Vector Machines and Comparisons to Regularized
        Likelihood Methods, 1999; the form of Lin, Lin and Weng, A Note on Platt's Probabilistic
        Outputs for Support Vector Machines, Machine Learning, 2007.

    Differs:
        All labels share a and b. The slope a has a lower bound above 0. L-BFGS-B on standardized x
        replaces Platt's optimization algorithm. As in the source, targets are smoothed. With P
        positive and N negative targets, a target of 1 becomes (P + 1) / (P + 2) and a target of 0
        becomes 1 / (N + 2). Therefore a and b are finite even if a threshold on x separates all
        positives from all negatives. Targets between 0 and 1 are interpolated linearly.

    Example:
        >>> calibrator = Platt().fit([[0.1], [0.3], [0.2], [0.4]], [[0], [0], [1], [1]])
        >>> round(calibrator.slope_, 4), round(calibrator.shift_, 4)
        (4.1147, -1.0287)
    """

    keeps_order: ClassVar[OrderPreservation] = "strictly"
    accepts_raw_scores: ClassVar[bool] = True
    shares_parameters: ClassVar[bool] = True

    @single_blas_thread()
    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the slope and the shift on held-out data by maximum likelihood.

        Args:
            logits: Finite log-odds or raw scores of n images and c labels, ``(n, c)``.
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
        start = float(logit(smooth_targets(y).mean()))
        mean, spread = float(x.mean()), float(x.std())
        if spread <= 1e-12 * abs(mean):
            self.slope_, self.shift_ = 1.0, start - mean
            return self
        standardized = x - mean
        standardized /= spread
        slope, shift = _fit_platt_slope_and_shift(standardized, y, start)
        self.slope_, self.shift_ = slope / spread, shift - slope * mean / spread
        return self

    def state(self) -> dict[str, float]:
        """Return the fitted slope and shift as a JSON-compatible dict."""
        self._check_fitted()
        return {"slope": self.slope_, "shift": self.shift_}

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the slope and the shift from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        arrays = validate_calibrator_state(state, slope="", shift="")
        slope, shift = float(arrays["slope"]), float(arrays["shift"])
        if slope <= 0:
            raise DataError(f"A saved slope must be above 0; got {slope}. Calibrate again.")
        self.slope_, self.shift_ = slope, shift
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        return self.slope_ * x + self.shift_


def _fit_platt_slope_and_shift(x: Array, y: Array, start: float) -> tuple[float, float]:
    """Return the slope and the shift that minimize the log loss, a convex function of both.

    Args:
        x: Standardized scores, ``(n,)``.
        y: Targets in [0, 1], ``(n,)``, which are smoothed here.
        start: Shift of the first step.
    """
    levels, terms = smoothed_target_levels(y), np.empty_like(x)

    def loss(line: Array) -> tuple[float, Array]:
        for block in row_blocks(x, n_bytes=CACHED_BYTES):
            expit(line[0] * x[block] + line[1], out=terms[block])
            terms[block] -= interpolate_smoothed_targets(y[block], *levels)
        gradient = np.array([terms @ x, terms.sum()]) / x.size
        for block in row_blocks(x, n_bytes=CACHED_BYTES):
            z, losses = line[0] * x[block] + line[1], terms[block]
            np.log1p(np.exp(-np.abs(z)), out=losses)
            losses += np.maximum(z, 0)
            losses -= interpolate_smoothed_targets(y[block], *levels) * z
        return float(terms.mean()), gradient

    solution = minimize(
        loss,
        [1.0, start],
        jac=True,
        method="L-BFGS-B",
        bounds=[(MIN_SLOPE, None), (None, None)],
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    return float(solution.x[0]), float(solution.x[1])
