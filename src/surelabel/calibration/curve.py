"""A rising staircase from scores to log-odds, as isotonic regression finds it."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from surelabel.records import Array


@dataclass(frozen=True)
class Curve:
    """Log-odds between whose steps lines are drawn; flat outside the first and the last.

    Attributes:
        knots: Scores, strictly rising, ``(k,)``.
        levels: Their log-odds, rising or flat, ``(k,)``.
    """

    knots: Array
    levels: Array

    def __call__(self, x: Array) -> Array:
        """The log-odds of scores of any shape."""
        found: Array = np.interp(x, self.knots, self.levels)
        return found

    @property
    def rises(self) -> bool:
        """Whether the knots rise strictly and the levels never fall."""
        return bool((np.diff(self.knots) > 0).all() and (np.diff(self.levels) >= 0).all())


def rising_curve(x: Array, y: Array, pseudo_count: float) -> Curve:
    """The rising staircase that fits targets ``y`` in [0, 1] at scores ``x``, both ``(n,)``.

    Every step of the isotonic fit gets ``pseudo_count`` decisions more, half of them present, so
    that none is certain; where that breaks the order, the steps are fitted once more.
    """
    scores, at = np.unique(x, return_inverse=True)  # equal scores have equal answers
    counts, present = np.bincount(at).astype(np.float64), np.bincount(at, weights=y)
    starts = isotonic_regression(present / counts, weights=counts).blocks[:-1]
    weights = np.add.reduceat(counts, starts) + pseudo_count
    shares = (np.add.reduceat(present, starts) + pseudo_count / 2) / weights
    shares = isotonic_regression(shares, weights=weights).x
    ends = np.append(starts[1:], len(scores)) - 1
    knots = np.stack([scores[starts], scores[ends]], axis=1).ravel()
    levels = np.repeat(np.log(shares) - np.log1p(-shares), 2)
    single = np.append(False, np.diff(knots) == 0)
    return Curve(knots[~single], levels[~single])
