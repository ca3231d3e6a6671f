"""Fit isotonic regression from scores to log-odds."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from surelabel.arrays import Array
from surelabel.mapped_arrays import to_mapped_array


@dataclass(frozen=True)
class IsotonicCurve:
    """Non-decreasing curve from scores to log-odds, linear between knots and constant outside.

    Attributes:
        knots: Scores of the k knots, strictly increasing, ``(k,)``.
        levels: Log-odds at the knots, non-decreasing, ``(k,)``.
    """

    knots: Array
    levels: Array

    def __repr__(self) -> str:
        """Return the number of knots."""
        return f"IsotonicCurve({len(self.knots)} knots)"

    def __call__(self, x: Array) -> Array:
        """Return the log-odds of scores of any shape."""
        log_odds: Array = np.interp(x, self.knots, self.levels)
        return log_odds

    @property
    def is_monotonic(self) -> bool:
        """Return whether the knots are strictly increasing and the levels non-decreasing."""
        return bool((np.diff(self.knots) > 0).all() and (np.diff(self.levels) >= 0).all())


def fit_isotonic_curve(x: Array, y: Array, pseudo_count: float) -> IsotonicCurve:
    """Return the isotonic regression of targets ``y`` in [0, 1] on scores ``x``, both ``(n,)``.

    Every step of the isotonic fit includes ``pseudo_count`` additional targets, half of them
    positive, so that no probability is 0 or 1. If the additional targets break the order of the
    steps, a second isotonic regression restores the order.
    """
    scores, counts, positives = map(to_mapped_array, _targets_per_score(x, y))
    starts = isotonic_regression(positives / counts, weights=counts).blocks[:-1]
    weights = np.add.reduceat(counts, starts) + pseudo_count
    shares = (np.add.reduceat(positives, starts) + pseudo_count / 2) / weights
    shares = isotonic_regression(shares, weights=weights).x
    ends = np.append(starts[1:], len(scores)) - 1
    knots = np.stack([scores[starts], scores[ends]], axis=1).ravel()
    levels = np.repeat(np.log(shares) - np.log1p(-shares), 2)
    is_repeated = np.append(False, np.diff(knots) == 0)
    return IsotonicCurve(knots[~is_repeated], levels[~is_repeated])


def _targets_per_score(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Return the distinct scores in ascending order, and the number and sum of their targets."""
    order = np.argsort(x, kind="stable")
    scores, y = x[order], y[order]
    del order
    is_first = np.append(True, scores[1:] != scores[:-1])  # equal scores share a probability
    scores = scores[is_first]
    score_index = np.cumsum(is_first)
    score_index -= 1
    positives = np.bincount(score_index, weights=y).astype(np.float64, copy=False)
    del score_index, y
    counts = np.diff(np.append(np.flatnonzero(is_first), len(is_first))).astype(np.float64)
    return scores, counts, positives
