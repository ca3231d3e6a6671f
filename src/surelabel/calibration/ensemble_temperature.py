"""This module defines ensemble temperature scaling, the parametric part of Mix-n-Match."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from surelabel.arrays import LOGIT_LIMIT, Array
from surelabel.blas_threads import single_blas_thread
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.input_validation import (
    validate_and_flatten_calibration_data,
    validate_calibrator_state,
)
from surelabel.calibration.fitting.target_smoothing import smooth_targets
from surelabel.calibration.interface import OrderPreservation
from surelabel.calibration.temperature import Temperature
from surelabel.errors import DataError


class EnsembleTemperature(BaseCalibrator):
    """Ensemble temperature scaling: a mixture of the scaled, original and prior probabilities.

        p = w1 · sigmoid(x / T) + w2 · sigmoid(x) + w3 · prior,   w >= 0,   w1 + w2 + w3 = 1

    Here x is the input logit, p is the calibrated probability, and T is the temperature that
    ``Temperature`` fits. The prior is the fraction of positives among the known targets. The
    weights w1, w2 and w3 minimize the log loss. All calibrated probabilities lie in [w3 · prior,
    1 - w3 · (1 - prior)]. Therefore differences between extreme logits become smaller.

    Attributes:
        temperature_: Fitted temperature T.
        weights_: Fitted mixture weights w1, w2 and w3, ``(3,)``.
        prior_: Fraction of positives among the known targets.

    Source:
        Zhang, Kailkhura and Han, Mix-n-Match: Ensemble and Compositional Methods for Uncertainty
        Calibration in Deep Learning, ICML 2020, arXiv:2003.07329.

    Differs:
        A sigmoid for each label replaces the softmax. The fraction of positives replaces the
        uniform probability 1 / (number of classes), which is inaccurate for rare labels. The
        weights minimize the log loss. The authors minimize the squared error, which is insensitive
        to rare labels. Targets are smoothed as in Platt scaling.

    Example:
        >>> x, y = [[-4.0], [-2.0], [2.0], [4.0], [4.0]], [[0], [0], [1], [1], [0]]
        >>> EnsembleTemperature().fit(x, y).weights_.round(3)
        array([0.   , 0.349, 0.651])
    """

    keeps_order: ClassVar[OrderPreservation] = "with ties"
    accepts_raw_scores: ClassVar[bool] = False
    shares_parameters: ClassVar[bool] = True

    @single_blas_thread()
    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the temperature, the prior and the mixture weights on held-out data.

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
        self.temperature_ = Temperature().fit(x[:, None], y[:, None]).temperature_
        self.prior_ = float(y.mean())
        self.weights_ = _fit_ensemble_temperature_weights(
            *self._component_probabilities(x), smooth_targets(y)
        )
        return self

    def state(self) -> dict[str, Any]:
        """Return the fitted temperature, weights and prior as a JSON-compatible dict."""
        self._check_fitted()
        return {
            "temperature": self.temperature_,
            "weights": self.weights_.tolist(),
            "prior": self.prior_,
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the temperature, the weights and the prior from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        arrays = validate_calibrator_state(state, temperature="", weights="k", prior="")
        weights, prior = arrays["weights"], float(arrays["prior"])
        is_mixture = weights.shape == (3,) and weights.min() >= 0 and abs(weights.sum() - 1) < 1e-6
        if not is_mixture or not 0 < prior < 1:
            raise DataError(
                f"A saved mixture must have three weights >= 0 that sum to 1, and a prior in "
                f"(0, 1); got {weights.tolist()} and {prior}. Calibrate again."
            )
        temperature = Temperature().restore({"temperature": state["temperature"]})
        self.temperature_, self.weights_, self.prior_ = temperature.temperature_, weights, prior
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        positive, negative = self._component_probabilities(x)
        log_odds: Array = np.log(positive @ self.weights_) - np.log(negative @ self.weights_)
        return log_odds

    def _component_probabilities(self, x: Array) -> tuple[Array, Array]:
        """Return p and 1 - p of the three mixture components, stacked on a new last axis."""
        x = np.clip(x, -LOGIT_LIMIT, LOGIT_LIMIT)
        scaled = np.clip(x / self.temperature_, -LOGIT_LIMIT, LOGIT_LIMIT)
        prior = np.full(x.shape, self.prior_)
        positive = np.stack([expit(scaled), expit(x), prior], axis=-1)
        return positive, np.stack([expit(-scaled), expit(-x), 1 - prior], axis=-1)


def _fit_ensemble_temperature_weights(positive: Array, negative: Array, y: Array) -> Array:
    """Return the mixture weights that minimize the log loss, which is convex in the weights."""

    def loss(weights: Array) -> tuple[float, Array]:
        p, q = positive @ weights, negative @ weights
        value = -(y * np.log(p) + (1 - y) * np.log(q)).mean()
        return float(value), -(positive.T @ (y / p) + negative.T @ ((1 - y) / q)) / len(y)

    solution = minimize(
        loss,
        [1 / 3, 1 / 3, 1 / 3],
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(3)},
        options={"ftol": 1e-12, "maxiter": 200},
    )
    weights = np.maximum(solution.x, 0)
    normalized: Array = weights / weights.sum()
    return normalized
