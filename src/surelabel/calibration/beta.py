"""Beta calibration."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, logit

from surelabel.calibration.checked import checked_state, known_decisions, smoothed
from surelabel.calibration.estimator import Estimator
from surelabel.calibration.protocol import Order
from surelabel.errors import ConfigError, DataError
from surelabel.records import Array

FLATTEST = 1e-3  # least a and b, so that order is kept


class Beta(Estimator):
    """Stretch logits by one number below zero and another above, and shift them.

        logit = a · log(p) - b · log(1 - p) + c,   p = sigmoid(x),   a, b > 0

    Far below zero it is a line of slope a, far above one of slope b, with a soft bend between: it
    follows where one slope, as Platt's, cannot. It takes log-odds; the bend is where they are 0.

    Args:
        shrinkage: Pull of a and b towards each other, as many nats as half the square of their
            distance; it decides only where one of them has hardly any decisions. >= 0.

    Attributes:
        slopes_: The fitted a and b, ``(2,)``, at least 0.001.
        shift_: The fitted c.

    Source:
        Kull, Silva Filho and Flach, Beta calibration: a well-founded and easily implemented
        improvement on logistic calibration for binary classifiers, AISTATS 2017.

    Differs:
        All labels share a, b and c. Both slopes are bounded in one fit, where the authors fit
        without bounds and leave out a feature that turned negative. The pull of a and b towards
        each other is ours: where all labels are rare, no logit is above 0 and b would be noise.
        Targets are smoothed as Platt's are.

    Example:
        >>> x = [[-4.0], [-2.0], [0.0], [2.0], [4.0]] * 20
        >>> y = [[0.2], [0.3], [0.4], [0.7], [0.95]] * 20
        >>> found = Beta().fit(x, y)
        >>> found.slopes_.round(4), round(found.shift_, 4)
        (array([0.1579, 0.7551]), -0.689)
    """

    keeps_order: ClassVar[Order] = "strictly"
    sets_level: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    def __init__(self, *, shrinkage: float = 1.0) -> None:
        self.shrinkage = shrinkage
        self._check_settings()

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit on held-out decisions.

        Args:
            logits: Log-odds, ``(n, c)``, finite.
            targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
            known: True where the target is known, ``(n, c)``; all of them when left out.

        Raises:
            InputError: a value is not what it must be, or no decision is present, or none absent.
        """
        x, y = known_decisions(logits, targets, known)
        y = smoothed(y)
        if np.ptp(x) <= 1e-12 * np.abs(x).max():
            self.slopes_, self.shift_ = np.ones(2), float(logit(y.mean()) - x[0])
            return self
        self.slopes_, self.shift_ = _likeliest_bend(x, y, self.shrinkage)
        return self

    def state(self) -> dict[str, Any]:
        """The fitted slopes and shift, ready for JSON."""
        self._check_fitted()
        return {"slopes": self.slopes_.tolist(), "shift": self.shift_}

    def restore(self, state: dict[str, Any]) -> Self:
        """Take fitted slopes and shift back from ``state``."""
        found = checked_state(state, slopes="k", shift="")
        if found["slopes"].shape != (2,) or found["slopes"].min() <= 0:
            raise DataError(
                f"Saved slopes must be two numbers above 0. Got {state['slopes']}; calibrate again."
            )
        self.slopes_, self.shift_ = found["slopes"], float(found["shift"])
        return self

    def _log_odds(self, x: Array) -> Array:
        return _features(x) @ self.slopes_ + self.shift_

    def _check_settings(self) -> None:
        if not (np.isfinite(self.shrinkage) and self.shrinkage >= 0):
            raise ConfigError(
                f"shrinkage must be a finite number >= 0, 0 for none. Got {self.shrinkage}."
            )


def _features(x: Array) -> Array:
    """log(p) and -log(1 - p) of log-odds, beside each other on a new last axis."""
    return np.stack([-np.logaddexp(0, -x), np.logaddexp(0, x)], axis=-1)


def _likeliest_bend(x: Array, y: Array, shrinkage: float) -> tuple[Array, float]:
    """Slopes and shift of least penalised log loss, which is convex in all three."""
    features = _features(x)
    middle, spread = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-12)
    features = (features - middle) / spread
    pull = shrinkage / x.size * np.array([1.0, -1.0])

    def loss(parts: Array) -> tuple[float, Array]:
        slopes = parts[:2] / spread
        z = features @ parts[:2] + parts[2]
        residual = expit(z) - y
        value = (
            np.mean(np.logaddexp(0, z) - y * z) + shrinkage / x.size * np.diff(slopes)[0] ** 2 / 2
        )
        slope = features.T @ residual / x.size + (slopes[0] - slopes[1]) * pull / spread
        return float(value), np.append(slope, residual.mean())

    found = minimize(
        loss,
        [*spread, logit(y.mean())],
        jac=True,
        method="L-BFGS-B",
        bounds=[*((FLATTEST * s, None) for s in spread), (None, None)],
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000},
    )
    slopes = found.x[:2] / spread
    return slopes, float(found.x[2] - middle @ slopes)
