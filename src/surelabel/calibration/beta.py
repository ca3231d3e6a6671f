"""This module defines beta calibration."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, logit

from surelabel.arrays import Array
from surelabel.blas_threads import single_blas_thread
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.beta_features import beta_features
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
from surelabel.errors import ConfigError, DataError
from surelabel.mapped_arrays import CACHED_BYTES, row_blocks

MIN_SLOPE = 1e-3  # lower bound of a and b, which preserves the order


class Beta(BaseCalibrator):
    """Beta calibration: separate slopes for negative and positive logits, and one shift.

        logit = a · log(p) - b · log(1 - p) + c,   p = sigmoid(x),   a, b > 0

    Here x is the input, logit is the calibrated logit, a and b are the slopes, and c is the shift.
    The calibrated logit tends to a line with slope a for very negative inputs and with slope b for
    very positive inputs. Use beta calibration if the single slope of Platt scaling is not
    sufficient. The input may be log-odds or raw scores, but the slope always changes around 0.

    Args:
        shrinkage: Strength of the penalty on the difference between a and b, >= 0. The penalty
            ``shrinkage`` / 2 · (a - b)^2 is added to the log loss, summed over all known targets.
            The penalty has a large effect only if few inputs are negative or few are positive.

    Attributes:
        slopes_: Fitted slopes a and b, ``(2,)``, at least 0.001. If all inputs are equal, both are
            1.
        shift_: Fitted shift c.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        Kull, Silva Filho and Flach, Beta calibration: a well-founded and easily implemented
        improvement on logistic calibration for binary classifiers, AISTATS 2017.

    Differs:
        All labels share a, b and c. Here both slopes are at least 0.001 during the fit. The authors
        fit without bounds. If a slope is negative, they set the slope to 0 and fit again. The
        penalty on the difference of a and b is ours. Without the penalty, b would be fitted to
        noise if all labels are rare, because few logits are above 0. Targets are smoothed as in
        Platt scaling.

    Example:
        >>> x = [[-4.0], [-2.0], [0.0], [2.0], [4.0]] * 20
        >>> y = [[0.2], [0.3], [0.4], [0.7], [0.95]] * 20
        >>> calibrator = Beta().fit(x, y)
        >>> calibrator.slopes_.round(4), round(calibrator.shift_, 4)
        (array([0.1579, 0.7551]), -0.689)
    """

    keeps_order: ClassVar[OrderPreservation] = "strictly"
    accepts_raw_scores: ClassVar[bool] = True
    shares_parameters: ClassVar[bool] = True

    def __init__(self, *, shrinkage: float = 1.0) -> None:
        self.shrinkage = shrinkage
        self._check_settings()

    @single_blas_thread()
    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the slopes and the shift on held-out data by penalized maximum likelihood.

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
        if np.ptp(x) <= 1e-12 * np.abs(x).max():
            self.slopes_, self.shift_ = np.ones(2), float(start - x[0])
            return self
        self.slopes_, self.shift_ = _fit_beta_slopes_and_shift(x, y, start, self.shrinkage)
        return self

    def state(self) -> dict[str, Any]:
        """Return the fitted slopes and shift as a JSON-compatible dict."""
        self._check_fitted()
        return {"slopes": self.slopes_.tolist(), "shift": self.shift_}

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the slopes and the shift from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        arrays = validate_calibrator_state(state, slopes="k", shift="")
        if arrays["slopes"].shape != (2,) or arrays["slopes"].min() <= 0:
            raise DataError(
                f"Saved slopes must be two numbers above 0; got {state['slopes']}. Calibrate again."
            )
        self.slopes_, self.shift_ = arrays["slopes"], float(arrays["shift"])
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        return beta_features(x) @ self.slopes_ + self.shift_

    def _check_settings(self) -> None:
        if not (np.isfinite(self.shrinkage) and self.shrinkage >= 0):
            raise ConfigError(
                f"shrinkage must be a finite number >= 0; got {self.shrinkage}. "
                "Use 0 for no penalty."
            )


def _fit_beta_slopes_and_shift(
    x: Array, y: Array, start: float, shrinkage: float
) -> tuple[Array, float]:
    """Return the slopes and the shift that minimize the penalized log loss, which is convex.

    Args:
        x: Log-odds or raw scores, ``(n,)``.
        y: Targets in [0, 1], ``(n,)``, which are smoothed here.
        start: Shift of the first step.
        shrinkage: Strength of the penalty on the difference of the slopes.
    """
    features, center, spread = _standardized_beta_features(x)
    levels, terms = smoothed_target_levels(y), np.empty_like(x)
    penalty_gradient = shrinkage / x.size * np.array([1.0, -1.0])

    def loss(parameters: Array) -> tuple[float, Array]:
        slopes = parameters[:2] / spread
        for block in row_blocks(x, n_bytes=CACHED_BYTES):
            expit(features[block] @ parameters[:2] + parameters[2], out=terms[block])
            terms[block] -= interpolate_smoothed_targets(y[block], *levels)
        gradient = features.T @ terms / x.size + (slopes[0] - slopes[1]) * penalty_gradient / spread
        gradient = np.append(gradient, terms.mean())
        for block in row_blocks(x, n_bytes=CACHED_BYTES):
            z = features[block] @ parameters[:2] + parameters[2]
            np.logaddexp(0, z, out=terms[block])
            terms[block] -= interpolate_smoothed_targets(y[block], *levels) * z
        value = np.mean(terms) + shrinkage / x.size * np.diff(slopes)[0] ** 2 / 2
        return float(value), gradient

    solution = minimize(
        loss,
        [*spread, start],
        jac=True,
        method="L-BFGS-B",
        bounds=[*((MIN_SLOPE * s, None) for s in spread), (None, None)],
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000},
    )
    slopes = solution.x[:2] / spread
    return slopes, float(solution.x[2] - center @ slopes)


def _standardized_beta_features(x: Array) -> tuple[Array, Array, Array]:
    """Return the standardized features of ``x``, ``(n, 2)``, and their means and deviations."""
    features = beta_features(x)
    center = features.mean(axis=0)
    features -= center
    squares = np.zeros(2)
    for block in row_blocks(features, n_bytes=CACHED_BYTES):
        squares = np.vstack([squares, features[block] ** 2]).sum(axis=0)
    spread = np.maximum(np.sqrt(squares / len(x)), 1e-12)
    features /= spread
    return features, center, spread
