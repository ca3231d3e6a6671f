"""This module defines isotonic regression with one curve for all labels."""

from typing import Any, ClassVar, Self

import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.input_validation import (
    check_positive_calibrator_setting,
    validate_and_flatten_calibration_data,
    validate_calibrator_state,
)
from surelabel.calibration.fitting.isotonic_curve import IsotonicCurve, fit_isotonic_curve
from surelabel.calibration.interface import OrderPreservation
from surelabel.errors import DataError


class Isotonic(BaseCalibrator):
    """Isotonic regression: the non-decreasing map from scores to probabilities with the best fit.

        p = isotonic regression of the targets on x; each step includes ``pseudo_count``
            additional targets, half of them positive
        logit = log(p / (1 - p)), interpolated linearly between steps, constant outside the data

    Here x is the input logit or raw score, p is the calibrated probability, and logit is the
    calibrated logit. Isotonic regression corrects every miscalibration that preserves the order,
    but needs thousands of known targets. Inputs on the same step get equal probabilities. To rank
    images with equal probabilities, compare their raw scores.

    Args:
        pseudo_count: Number of targets, above 0, that are added to every step so that no
            probability is 0 or 1.

    Attributes:
        curve_: Fitted isotonic curve.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        Zadrozny and Elkan, Transforming Classifier Scores into Accurate Multiclass Probability
        Estimates, KDD 2002; one curve for all labels as in Zhang, Kailkhura and Han, Mix-n-Match,
        ICML 2020, arXiv:2003.07329.

    Differs:
        The pseudo-count is ours. Without the pseudo-count, one error on a step with probability 0
        or 1 would make the log loss infinite. Interpolation between steps is linear in log-odds,
        not in probabilities.

    Example:
        >>> x, y = [[-2.0], [-1.0], [0.0], [1.0]], [[0], [1], [0], [1]]
        >>> Isotonic().fit(x, y).predict_proba(x).round(4)
        array([[0.25],
               [0.5 ],
               [0.5 ],
               [0.75]])
    """

    keeps_order: ClassVar[OrderPreservation] = "with ties"
    accepts_raw_scores: ClassVar[bool] = True
    shares_parameters: ClassVar[bool] = True

    def __init__(self, *, pseudo_count: float = 1.0) -> None:
        self.pseudo_count = pseudo_count
        self._check_settings()

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the isotonic curve on held-out data.

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
        self.curve_ = fit_isotonic_curve(x, y, self.pseudo_count)
        return self

    def state(self) -> dict[str, Any]:
        """Return the knots and levels of the curve as a JSON-compatible dict."""
        self._check_fitted()
        return {"knots": self.curve_.knots.tolist(), "levels": self.curve_.levels.tolist()}

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the curve from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        arrays = validate_calibrator_state(state, knots="k", levels="k")
        curve = IsotonicCurve(arrays["knots"], arrays["levels"])
        if not curve.is_monotonic:
            raise DataError(
                "A saved curve must have increasing knots and non-decreasing levels; got a curve "
                "with another order. Calibrate again."
            )
        self.curve_ = curve
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        return self.curve_(x)

    def _check_settings(self) -> None:
        check_positive_calibrator_setting("pseudo_count", self.pseudo_count)
