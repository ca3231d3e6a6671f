"""Isotonic regression of every label, leaning on the curve of all labels together."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.calibration.checked import (
    check_labels,
    checked_amount,
    checked_state,
    known_matrix,
    shortened,
)
from surelabel.calibration.curve import Curve, rising_curve
from surelabel.calibration.estimator import Estimator
from surelabel.calibration.isotonic import Isotonic
from surelabel.calibration.protocol import Order
from surelabel.errors import DataError
from surelabel.records import Array, Flags

NOTHING = Curve(np.zeros(1), np.zeros(1))  # of a label with no positives or no negatives
STEP_COUNT = 1.0  # decisions added to every step, as ``Isotonic`` does by default


class IsotonicPerClass(Estimator):
    """Follow a rising curve of every label, mixed with the one of all labels together.

        p_c = w_c · own_c(x) + (1 - w_c) · pooled(x)
        w_c = k_c / (k_c + m),   k_c = present or absent decisions of c, whichever are fewer

    A label with m = ``pseudo_count`` positives is half its own; one without any gets the pooled
    curve.

    Args:
        pseudo_count: How many positives of a label weigh as much as the pooled curve. Above 0.

    Attributes:
        shared_: The fitted pooled ``Isotonic``.
        curves_: The own staircase of every label, ``c`` of them.
        weights_: How much its own counts, in [0, 1), ``(c,)``.

    Source:
        Zadrozny and Elkan, Transforming Classifier Scores into Accurate Multiclass Probability
        Estimates, KDD 2002: one curve a class.

    Differs:
        The mixture with the pooled curve is ours; alone, the curve of a label with a handful of
        positives is a step or two.

    Example:
        >>> x = [[-2.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [1.0, 2.0]]
        >>> y = [[0, 0], [1, 0], [0, 0], [1, 0]]
        >>> IsotonicPerClass(pseudo_count=2).fit(x, y).weights_
        array([0.5, 0. ])
    """

    keeps_order: ClassVar[Order] = "with ties"
    sets_level: ClassVar[bool] = True
    shared: ClassVar[bool] = False

    def __init__(self, *, pseudo_count: float = 20.0) -> None:
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
        x, y, seen = known_matrix(logits, targets, known)
        self.shared_ = Isotonic(pseudo_count=STEP_COUNT).fit(x, y, seen)
        present = y.sum(axis=0)
        fewer = np.minimum(present, seen.sum(axis=0) - present)
        self.weights_ = fewer / (fewer + self.pseudo_count)
        self.curves_ = [
            _own_curve(*column) if weight > 0 else NOTHING
            for *column, weight in zip(x.T, y.T, seen.T, self.weights_, strict=True)
        ]
        return self

    def shared_part(self) -> Isotonic:
        """The curve of all labels together."""
        self._check_fitted()
        return self.shared_

    def state(self) -> dict[str, Any]:
        """Weights and curves, pooled and of every label, ready for JSON."""
        self._check_fitted()
        return {
            "weights": self.weights_.tolist(),
            "pooled": list(self.shared_.state().values()),
            "curves": [[c.knots.tolist(), c.levels.tolist()] for c in self.curves_],
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Take weights and curves back from ``state``."""
        rest = {name: value for name, value in state.items() if name != "curves"}
        found, curves = checked_state(rest, weights="c", pooled="two k"), state.get("curves")
        weights = found["weights"]
        if not isinstance(curves, list) or len(curves) != len(weights) or _outside(weights):
            raise DataError(
                "A saved calibration must have weights in [0, 1] and as many curves. Got "
                f"{shortened(repr(weights.tolist()))} and {shortened(repr(curves))}; "
                "calibrate again."
            )
        self.shared_ = _restored(state["pooled"])
        self.curves_ = [_restored(curve).curve_ for curve in curves]
        self.weights_ = weights
        return self

    def _log_odds(self, x: Array) -> Array:
        check_labels(x, len(self.weights_))
        own = np.stack([curve(column) for curve, column in zip(self.curves_, x.T, strict=True)])
        pooled = self.shared_.logits(x)
        share = self.weights_
        present = share * expit(own.T) + (1 - share) * expit(pooled)
        absent = share * expit(-own.T) + (1 - share) * expit(-pooled)
        odds: Array = np.log(present) - np.log(absent)
        return odds

    def _check_settings(self) -> None:
        checked_amount("pseudo_count", self.pseudo_count)


def _own_curve(x: Array, y: Array, seen: Flags) -> Curve:
    return rising_curve(x[seen], y[seen], STEP_COUNT)


def _restored(curve: Any) -> Isotonic:
    """A saved curve, checked as ``Isotonic`` checks it."""
    if not isinstance(curve, list) or len(curve) != 2:
        raise DataError(
            f"A saved curve must be a list of knots and one of levels. Got "
            f"{shortened(repr(curve))}; calibrate again."
        )
    return Isotonic().restore(dict(zip(("knots", "levels"), curve, strict=True)))


def _outside(weights: Array) -> bool:
    return bool(weights.min() < 0 or weights.max() > 1)
