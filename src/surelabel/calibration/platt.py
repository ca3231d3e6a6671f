"""Platt scaling."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, logit

from surelabel.calibration.checked import checked_state, known_decisions, smoothed
from surelabel.calibration.estimator import Estimator
from surelabel.calibration.protocol import Order
from surelabel.errors import DataError
from surelabel.records import Array

FLATTEST = 1e-3  # least slope, for scores of standard deviation 1


class Platt(Estimator):
    """Stretch and shift all logits, or raw scores, by two numbers found by maximum likelihood.

        logit = a · x + b,   a > 0

    Attributes:
        slope_: The fitted a. Never below 0.001 over the standard deviation of x, so the order is
            kept also where the likelihood would turn it round; 1 where all x are the same.
        shift_: The fitted b.

    Source:
        Platt, Probabilistic Outputs for Support Vector Machines and Comparisons to Regularized
        Likelihood Methods, 1999; the form of Lin, Lin and Weng, A Note on Platt's Probabilistic
        Outputs for Support Vector Machines, Machine Learning, 2007.

    Differs:
        All labels share a and b, a stays above 0, and L-BFGS-B on standardised x takes the place
        of Platt's search. As there, present counts as (P + 1) / (P + 2) and absent as 1 / (N + 2)
        with P present and N absent decisions, so that a and b are finite also for decisions that
        are all right; graded targets lie between the two.

    Example:
        >>> found = Platt().fit([[0.1], [0.3], [0.2], [0.4]], [[0], [0], [1], [1]])
        >>> round(found.slope_, 4), round(found.shift_, 4)
        (4.1147, -1.0287)
    """

    keeps_order: ClassVar[Order] = "strictly"
    sets_level: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit on held-out decisions.

        Args:
            logits: Log-odds or raw scores, ``(n, c)``, finite.
            targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
            known: True where the target is known, ``(n, c)``; all of them when left out.

        Raises:
            InputError: a value is not what it must be, or no decision is present, or none absent.
        """
        x, y = known_decisions(logits, targets, known)
        y = smoothed(y)
        centre, spread = float(x.mean()), float(x.std())
        if spread <= 1e-12 * abs(centre):
            self.slope_, self.shift_ = 1.0, float(logit(y.mean())) - centre
            return self
        slope, shift = _likeliest_line((x - centre) / spread, y)
        self.slope_, self.shift_ = slope / spread, shift - slope * centre / spread
        return self

    def state(self) -> dict[str, float]:
        """The fitted slope and shift, ready for JSON."""
        self._check_fitted()
        return {"slope": self.slope_, "shift": self.shift_}

    def restore(self, state: dict[str, Any]) -> Self:
        """Take fitted slope and shift back from ``state``."""
        numbers = checked_state(state, slope="", shift="")
        slope, shift = float(numbers["slope"]), float(numbers["shift"])
        if slope <= 0:
            raise DataError(f"A saved slope must be above 0. Got {slope}; calibrate again.")
        self.slope_, self.shift_ = slope, shift
        return self

    def _log_odds(self, x: Array) -> Array:
        return self.slope_ * x + self.shift_


def _likeliest_line(x: Array, y: Array) -> tuple[float, float]:
    """Slope and shift of least log loss, which is convex in both."""

    def loss(line: Array) -> tuple[float, Array]:
        z = line[0] * x + line[1]
        residual = expit(z) - y
        value = np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - y * z
        return float(value.mean()), np.array([residual @ x, residual.sum()]) / x.size

    found = minimize(
        loss,
        [1.0, logit(y.mean())],
        jac=True,
        method="L-BFGS-B",
        bounds=[(FLATTEST, None), (None, None)],
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    return float(found.x[0]), float(found.x[1])
