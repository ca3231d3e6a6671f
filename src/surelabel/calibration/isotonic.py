"""Isotonic regression, all labels together."""

from typing import Any, ClassVar, Self

import numpy.typing as npt

from surelabel.calibration.checked import checked_amount, checked_state, known_decisions
from surelabel.calibration.curve import Curve, rising_curve
from surelabel.calibration.estimator import Estimator
from surelabel.calibration.protocol import Order
from surelabel.errors import DataError
from surelabel.records import Array


class Isotonic(Estimator):
    """Follow any rising curve from scores to probabilities, the one that fits best.

        p = isotonic regression of the targets on x; each step of it counts ``pseudo_count``
            decisions more, half of them present
        logit = log(p / (1 - p)), with lines between the steps and flat outside the data

    It mends any misfit that keeps the order, and needs thousands of decisions for it. Pictures on
    one step tie: let the raw scores break the ties.

    Args:
        pseudo_count: Decisions added to every step, so that none is certain. Above 0.

    Attributes:
        curve_: The fitted staircase.

    Source:
        Zadrozny and Elkan, Transforming Classifier Scores into Accurate Multiclass Probability
        Estimates, KDD 2002; all labels together as in Zhang, Kailkhura and Han, Mix-n-Match,
        ICML 2020, arXiv:2003.07329.

    Differs:
        The pseudo-count is ours: a step of 0 or 1 would cost an infinite log loss at its first
        mistake. Between steps, lines join log-odds and not probabilities.

    Example:
        >>> x, y = [[-2.0], [-1.0], [0.0], [1.0]], [[0], [1], [0], [1]]
        >>> Isotonic().fit(x, y).predict_proba(x).round(4)
        array([[0.25],
               [0.5 ],
               [0.5 ],
               [0.75]])
    """

    keeps_order: ClassVar[Order] = "with ties"
    sets_level: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    def __init__(self, *, pseudo_count: float = 1.0) -> None:
        self.pseudo_count = pseudo_count
        self._check_settings()

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
        self.curve_ = rising_curve(*known_decisions(logits, targets, known), self.pseudo_count)
        return self

    def state(self) -> dict[str, Any]:
        """The knots and levels of the curve, ready for JSON."""
        self._check_fitted()
        return {"knots": self.curve_.knots.tolist(), "levels": self.curve_.levels.tolist()}

    def restore(self, state: dict[str, Any]) -> Self:
        """Take the curve back from ``state``."""
        found = checked_state(state, knots="k", levels="k")
        curve = Curve(found["knots"], found["levels"])
        if not curve.rises:
            raise DataError(
                "The knots of a saved curve must rise and its levels must not fall. Got one that "
                "breaks this; calibrate again."
            )
        self.curve_ = curve
        return self

    def _log_odds(self, x: Array) -> Array:
        return self.curve_(x)

    def _check_settings(self) -> None:
        checked_amount("pseudo_count", self.pseudo_count)
