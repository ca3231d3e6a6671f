"""From probabilities and the truth to a track record."""

import numpy as np
import numpy.typing as npt

from surelabel.decisions.checked import checked_decisions
from surelabel.decisions.record import THRESHOLDS, TrackRecord
from surelabel.records import Array, Flags

PICTURES = 4096  # at a time, which bounds the memory


def track(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> TrackRecord:
    """Count what would be shown, right, wrong and missed at each threshold.

    Args:
        logits: Calibrated log-odds, ``(n, c)``, of pictures that the calibration has not seen:
            held out, or cross-fitted.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.

    Returns:
        Everything that operating points and guarantees need later, without the pictures.

    Raises:
        InputError: shapes differ, a value is not what it must be, or nothing is known.

    Example:
        >>> record = track([[2.0, -2.0], [0.0, 0.0]], [[1, 0], [1, 0]])
        >>> half = record.thresholds.searchsorted(0.5)
        >>> record.shown[:, half], record.present[:, half], record.wrong[half]
        (array([2., 1.]), array([2., 0.]), np.float64(0.5))
    """
    probabilities, targets, known = checked_decisions(logits, targets, known)
    parts = (slice(start, start + PICTURES) for start in range(0, len(known), PICTURES))
    first, *others = (_tracked(probabilities[p], targets[p], known[p]) for p in parts)
    return sum(others, start=first)


def _tracked(probabilities: Array, targets: Array, known: Flags) -> TrackRecord:
    """A record of a few pictures."""
    pictures, labels = known.shape
    picture, label = np.nonzero(known)
    p, y = probabilities[known], targets[known]
    cell = np.searchsorted(THRESHOLDS, p, side="right") - 1
    cell = np.minimum(cell, THRESHOLDS.size - 2)  # at 1 nothing is shown
    tags, right = _above(picture, cell, pictures), _above(picture, cell, pictures, y)
    there = right[:, :1]
    return TrackRecord(
        thresholds=THRESHOLDS,
        shown=_above(label, cell, labels),
        present=_above(label, cell, labels, y),
        expected=_above(label, cell, labels, p),
        tagged=np.count_nonzero(tags, axis=0).astype(float),
        wrong=_sum_of_shares(tags - right, tags),
        missed=_sum_of_shares(there - right, np.broadcast_to(there, right.shape)),
        pictures=int(np.count_nonzero(tags[:, 0])),
        with_labels=int(np.count_nonzero(there)),
    )


def _above(
    group: npt.NDArray[np.intp],
    cell: npt.NDArray[np.intp],
    groups: int,
    weights: Array | None = None,
) -> Array:
    """Sum of the weights, or count, of what is at or above each threshold, ``(groups, g)``."""
    g = THRESHOLDS.size
    inside = np.bincount(group * g + cell, weights, groups * g).reshape(groups, g)
    above: Array = np.cumsum(inside[:, ::-1], axis=1, dtype=float)[:, ::-1]
    return above


def _sum_of_shares(part: Array, whole: Array) -> Array:
    """Over pictures, the sum of ``part / whole``, 0 where there is no whole, ``(g,)``."""
    shares = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    total: Array = shares.sum(axis=0)
    return total
