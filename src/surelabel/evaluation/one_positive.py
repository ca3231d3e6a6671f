"""The one-positive bias: the main thing is found, what lies beside it is not."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.metrics.checked import checked_scores
from surelabel.metrics.ratio import ratio
from surelabel.records import Array, Flags


@dataclass(frozen=True)
class MainAndOthers:
    """Recall of main objects and of the others, with as many labels shown as there are.

    Attributes:
        main: Share of the main objects that is found, in [0, 1]; NaN where there is none.
        others: Share of all other labels that is found, in [0, 1]; NaN where there is none.
    """

    main: float
    others: float

    @property
    def gap(self) -> float:
        """How much better main objects are found."""
        return self.main - self.others


def main_and_others(
    scores: npt.ArrayLike,
    targets: npt.ArrayLike,
    main: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
) -> MainAndOthers:
    """Show each picture as many labels as it has, and see which of them are right.

    Recall at the true count needs no threshold, so that scores of any kind can be compared, and a
    method cannot win by showing more.

    Args:
        scores: Finite numbers, higher means more likely, ``(n, c)``.
        targets: 1 where present, 0 where absent, NaN where unknown, ``(n, c)``.
        main: Column of the main object of each picture, ``(n,)``; -1 where it is none of the
            labels. One that is not present (hidden by others) is not asked for.
        known: True where the target is known, ``(n, c)``; only such labels are ranked.

    Raises:
        InputError: shapes differ, a score or a target is not what it must be, or ``main`` is no
            column.

    Source:
        none; ours. The bias is that of TailorCLIP, arXiv:2606.11626, section 3.1.

    Differs:
        Labels that tie for the last places share them equally.

    Example:
        >>> main_and_others([[0.9, 0.5, 0.1], [0.3, 0.8, 0.6]], [[1, 0, 1], [0, 1, 1]], [0, 1])
        MainAndOthers(main=1.0, others=0.5)
    """
    values, present, given = checked_scores(scores, targets, known)
    columns = np.asarray(main)
    n, c = values.shape
    if columns.shape != (n,) or columns.dtype.kind not in "iu":
        raise InputError(
            f"main must be a whole number for each of {n} pictures. Got {columns.dtype} of shape "
            f"{columns.shape}."
        )
    if n and not (columns.min() >= -1 and columns.max() < c):
        raise InputError(
            f"main must be columns of {c} labels, or -1. Got {columns.min()} to {columns.max()}."
        )
    is_main = np.arange(c) == columns[:, None]
    found = _found(values, present, given)
    return MainAndOthers(*(_share(found, present & part) for part in (is_main, ~is_main)))


def _share(found: Array, asked: Flags) -> float:
    return float(ratio(found[asked].sum(), np.float64(asked.sum())))


def _found(scores: Array, present: Flags, known: Flags) -> Array:
    """How much of each label is among the first, as many as are present, ``(n, c)`` in [0, 1]."""
    ranked = np.where(known, scores, -np.inf)
    places = present.sum(axis=1, keepdims=True)
    falling = -np.sort(-ranked, axis=1)
    last = np.take_along_axis(falling, np.maximum(places - 1, 0), axis=1)
    above, level = ranked > last, ranked == last
    left = places - above.sum(axis=1, keepdims=True)
    shares = np.where(level, left / np.maximum(level.sum(axis=1, keepdims=True), 1), above)
    found: Array = np.where(places > 0, shares, 0.0)
    return found
