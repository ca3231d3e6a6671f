"""This module defines isotonic regression per label, shrunk towards one curve for all labels."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import Array, Flags
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.input_validation import (
    check_calibrated_label_count,
    check_positive_calibrator_setting,
    truncate_calibrator_state,
    validate_calibration_data,
    validate_calibrator_state,
)
from surelabel.calibration.fitting.isotonic_curve import IsotonicCurve, fit_isotonic_curve
from surelabel.calibration.interface import OrderPreservation
from surelabel.calibration.isotonic import Isotonic
from surelabel.errors import DataError

ZERO_CURVE = IsotonicCurve(np.zeros(1), np.zeros(1))  # for a label without positives or negatives
STEP_PSEUDO_COUNT = 1.0  # decisions added to every step, the default of ``Isotonic``


class IsotonicPerClass(BaseCalibrator):
    """Isotonic regression per label: one curve for each label, mixed with the pooled curve.

        p_c = w_c · curve_c(x) + (1 - w_c) · pooled(x)
        w_c = k_c / (k_c + m),   k_c = min(positives of c, negatives of c)

    Here x is the input logit or raw score, p_c is the calibrated probability of label c, and m is
    ``pseudo_count``. curve_c(x) and pooled(x) are the probabilities of isotonic regression on label
    c and on all labels together. A label with m positives and at least m negatives has w_c = 1/2. A
    label without positives or without negatives uses the pooled curve only.

    Args:
        pseudo_count: Number of positives, above 0, at which the curve of a label and the pooled
            curve have equal weight. If a label has fewer negatives than positives, the number of
            negatives is used.

    Attributes:
        shared_: Fitted pooled ``Isotonic``.
        curves_: Fitted isotonic curve of each label, a list of length c.
        weights_: Weight w_c of the curve of each label, in [0, 1), ``(c,)``.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        Zadrozny and Elkan, Transforming Classifier Scores into Accurate Multiclass Probability
        Estimates, KDD 2002: one curve for each class.

    Differs:
        The mixture with the pooled curve is ours. Without the pooled curve, the curve of a label
        with few positives would have only one or two steps.

    Example:
        >>> x = [[-2.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [1.0, 2.0]]
        >>> y = [[0, 0], [1, 0], [0, 0], [1, 0]]
        >>> IsotonicPerClass(pseudo_count=2).fit(x, y).weights_
        array([0.5, 0. ])
    """

    keeps_order: ClassVar[OrderPreservation] = "with ties"
    accepts_raw_scores: ClassVar[bool] = True
    shares_parameters: ClassVar[bool] = False

    def __init__(self, *, pseudo_count: float = 20.0) -> None:
        self.pseudo_count = pseudo_count
        self._check_settings()

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the pooled curve and the curve of each label on held-out data.

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
        x, y, known = validate_calibration_data(logits, targets, known)
        self.shared_ = Isotonic(pseudo_count=STEP_PSEUDO_COUNT).fit(x, y, known)
        positives = y.sum(axis=0)
        smaller_count = np.minimum(positives, known.sum(axis=0) - positives)
        self.weights_ = smaller_count / (smaller_count + self.pseudo_count)
        self.curves_ = [
            _fit_isotonic_class_curve(*column) if weight > 0 else ZERO_CURVE
            for *column, weight in zip(x.T, y.T, known.T, self.weights_, strict=True)
        ]
        return self

    def shared_calibrator(self) -> Isotonic:
        """Return the pooled isotonic regression, which is valid for new labels."""
        self._check_fitted()
        return self.shared_

    def state(self) -> dict[str, Any]:
        """Return the weights, the pooled curve and all label curves as a JSON-compatible dict."""
        self._check_fitted()
        return {
            "weights": self.weights_.tolist(),
            "pooled": list(self.shared_.state().values()),
            "curves": [[c.knots.tolist(), c.levels.tolist()] for c in self.curves_],
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the weights and the curves from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        if not isinstance(state, dict):
            raise DataError(
                "A saved calibration must be a dictionary of weights, pooled and curves; got "
                f"{truncate_calibrator_state(repr(state))}. Calibrate again."
            )
        without_curves = {name: value for name, value in state.items() if name != "curves"}
        arrays = validate_calibrator_state(without_curves, weights="c", pooled="two k")
        weights, curves = arrays["weights"], state.get("curves")
        if (
            not isinstance(curves, list)
            or len(curves) != len(weights)
            or _has_invalid_isotonic_class_weight(weights)
        ):
            raise DataError(
                "A saved calibration must have weights in [0, 1] and one curve for each weight; "
                f"got {truncate_calibrator_state(repr(weights.tolist()))} and "
                f"{truncate_calibrator_state(repr(curves))}. Calibrate again."
            )
        self.shared_ = _restore_isotonic_class_curve(state["pooled"])
        self.curves_ = [_restore_isotonic_class_curve(curve).curve_ for curve in curves]
        self.weights_ = weights
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        check_calibrated_label_count(x, len(self.weights_))
        columns = zip(self.curves_, x.T, strict=True)
        per_label = np.stack([curve(column) for curve, column in columns])
        pooled = self.shared_.logits(x)
        weights = self.weights_
        positive = weights * expit(per_label.T) + (1 - weights) * expit(pooled)
        negative = weights * expit(-per_label.T) + (1 - weights) * expit(-pooled)
        log_odds: Array = np.log(positive) - np.log(negative)
        return log_odds

    def _check_settings(self) -> None:
        check_positive_calibrator_setting("pseudo_count", self.pseudo_count)


def _fit_isotonic_class_curve(x: Array, y: Array, known: Flags) -> IsotonicCurve:
    """Return the isotonic curve of one label, fitted on its known targets."""
    return fit_isotonic_curve(x[known], y[known], STEP_PSEUDO_COUNT)


def _restore_isotonic_class_curve(curve: Any) -> Isotonic:
    """Return an ``Isotonic`` with a saved curve, validated by ``Isotonic.restore``."""
    if not isinstance(curve, list) or len(curve) != 2:
        raise DataError(
            f"A saved curve must be a list of knots and a list of levels; got "
            f"{truncate_calibrator_state(repr(curve))}. Calibrate again."
        )
    return Isotonic().restore(dict(zip(("knots", "levels"), curve, strict=True)))


def _has_invalid_isotonic_class_weight(weights: Array) -> bool:
    """Return whether a weight lies outside [0, 1]."""
    return bool(weights.min() < 0 or weights.max() > 1)
