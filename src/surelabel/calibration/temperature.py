"""This module defines temperature scaling."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit

from surelabel.arrays import Array
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.input_validation import (
    validate_and_flatten_calibration_data,
    validate_calibrator_state,
)
from surelabel.calibration.fitting.target_smoothing import smooth_targets
from surelabel.calibration.interface import OrderPreservation
from surelabel.errors import DataError

MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-3, 1e3


class Temperature(BaseCalibrator):
    """Temperature scaling: divide all logits by one temperature.

        logit = x / T

    Here x is the input logit, logit is the calibrated logit, and the temperature T maximizes the
    likelihood. Temperature scaling corrects overconfidence and underconfidence, but not a wrong
    mean probability. If the mean probability is wrong, or if the inputs are raw scores, use
    ``Platt``.

    Attributes:
        temperature_: Fitted temperature T, in [0.001, 1000]. If the optimum is outside this range,
            for example because the logits do not predict the targets, T is the nearest bound. If
            all logits are 0, T is 1.

    Source:
        Guo et al., On Calibration of Modern Neural Networks, ICML 2017, arXiv:1706.04599.

    Differs:
        A sigmoid for each label replaces the softmax over classes, and all labels share T. Targets
        are smoothed as in Platt scaling. Without smoothing, T would be the lower bound if all
        predictions are correct, which is frequent with few images.

    Example:
        >>> x, y = [[3.0], [3.0], [-3.0], [-3.0]], [[1], [0.5], [0], [0.5]]
        >>> calibrator = Temperature().fit(x, y)
        >>> round(calibrator.temperature_, 4), calibrator.logits([[6.0]]).round(4)
        (5.8728, array([[1.0217]]))
    """

    keeps_order: ClassVar[OrderPreservation] = "strictly"
    accepts_raw_scores: ClassVar[bool] = False
    shares_parameters: ClassVar[bool] = True

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the temperature on held-out data by maximum likelihood.

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
        y = smooth_targets(y)

        def gradient(log_t: float) -> float:  # of the log-likelihood, concave in 1 / T
            return float((y - expit(x / np.exp(log_t))) @ x)

        low, high = np.log(MIN_TEMPERATURE), np.log(MAX_TEMPERATURE)
        if not x.any():
            self.temperature_ = 1.0
        elif gradient(low) >= 0:
            self.temperature_ = MIN_TEMPERATURE
        elif gradient(high) <= 0:
            self.temperature_ = MAX_TEMPERATURE
        else:
            self.temperature_ = float(np.exp(brentq(gradient, low, high, xtol=1e-10)))
        return self

    def state(self) -> dict[str, float]:
        """Return the fitted temperature as a JSON-compatible dict."""
        self._check_fitted()
        return {"temperature": self.temperature_}

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the temperature from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        temperature = float(validate_calibrator_state(state, temperature="")["temperature"])
        if temperature <= 0:
            raise DataError(
                f"A saved temperature must be above 0; got {temperature}. Calibrate again."
            )
        self.temperature_ = temperature
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        return x / self.temperature_
