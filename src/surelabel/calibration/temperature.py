"""Temperature scaling."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit

from surelabel.calibration.checked import checked_state, known_decisions, smoothed
from surelabel.calibration.estimator import Estimator
from surelabel.calibration.protocol import Order
from surelabel.errors import DataError
from surelabel.records import Array

COLDEST, HOTTEST = 1e-3, 1e3


class Temperature(Estimator):
    """Divide all logits by one number, found by maximum likelihood.

        logit = x / T

    It corrects how sure a model is, not how often it says yes: where the level is wrong too, and
    for raw scores that have none, take ``Platt``.

    Attributes:
        temperature_: The fitted T, in [0.001, 1000]. Decisions no better than chance ask for
            more; they get the end of the range.

    Source:
        Guo et al., On Calibration of Modern Neural Networks, ICML 2017, arXiv:1706.04599.

    Differs:
        The sigmoid of every label in place of the softmax over classes; all labels share T.
        Targets are smoothed as Platt's are, so that a few decisions that are all right make
        nothing certain.

    Example:
        >>> found = Temperature().fit([[3.0], [3.0], [-3.0], [-3.0]], [[1], [0.5], [0], [0.5]])
        >>> round(found.temperature_, 4), found.logits([[6.0]]).round(4)
        (5.8728, array([[1.0217]]))
    """

    keeps_order: ClassVar[Order] = "strictly"
    sets_level: ClassVar[bool] = False
    shared: ClassVar[bool] = True

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

        def slope(log_t: float) -> float:  # of the likelihood in 1 / T, which is concave
            return float((y - expit(x / np.exp(log_t))) @ x)

        low, high = np.log(COLDEST), np.log(HOTTEST)
        if not x.any():
            self.temperature_ = 1.0
        elif slope(low) >= 0:
            self.temperature_ = COLDEST
        elif slope(high) <= 0:
            self.temperature_ = HOTTEST
        else:
            self.temperature_ = float(np.exp(brentq(slope, low, high, xtol=1e-10)))
        return self

    def state(self) -> dict[str, float]:
        """The fitted temperature, ready for JSON."""
        self._check_fitted()
        return {"temperature": self.temperature_}

    def restore(self, state: dict[str, Any]) -> Self:
        """Take a fitted temperature back from ``state``."""
        temperature = float(checked_state(state, temperature="")["temperature"])
        if temperature <= 0:
            raise DataError(
                f"A saved temperature must be above 0. Got {temperature}; calibrate again."
            )
        self.temperature_ = temperature
        return self

    def _log_odds(self, x: Array) -> Array:
        return x / self.temperature_
