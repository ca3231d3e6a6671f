"""Which labels are shown together, and which belong together."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.evaluation.label_counts import at_least, decisions
from surelabel.metrics.ratio import ratio
from surelabel.records import Array


@dataclass(frozen=True)
class Together:
    """How often two labels are in one picture, as shares of the pictures; NaN where none is known.

    Attributes:
        shown: Both are shown, ``(c, c)``; on the diagonal how often a label is shown at all.
        present: Both are there, ``(c, c)``; None without a truth.
    """

    shown: Array
    present: Array | None

    @property
    def difference(self) -> Array | None:
        """Share of the pictures that shows a pair too often; below 0 too seldom, ``(c, c)``."""
        return None if self.present is None else self.shown - self.present

    @property
    def distance(self) -> float:
        """Mean absolute difference of the pairs of two labels; NaN without a truth."""
        found = np.array([abs(gap) for _, _, gap in self.pairs()])
        return float(found.mean()) if found.size else float("nan")

    def pairs(self) -> list[tuple[int, int, float]]:
        """Columns of two labels and their difference, the greatest first, whatever its sign."""
        if self.difference is None:
            return []
        rows, columns = np.triu_indices(len(self.shown), k=1)
        gaps = self.difference[rows, columns]
        told = np.flatnonzero(~np.isnan(gaps))
        order = told[np.argsort(-np.abs(gaps[told]), kind="stable")]
        return [(int(rows[i]), int(columns[i]), float(gaps[i])) for i in order]


def together(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike | None = None,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float | npt.ArrayLike = 0.5,
) -> Together:
    """Count the pictures that show two labels at once, and those that have both.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``; None where no truth is
            known. A graded pair counts as the product of its targets.
        known: True where the target is known, ``(n, c)``; a pair counts where both are.
        threshold: Least probability of a label that is shown: one, or one a label ``(c,)``.

    Raises:
        InputError: shapes differ, there is no picture, or something is NaN or outside [0, 1].
        ConfigError: a threshold is outside [0, 1].

    Example:
        >>> found = together([[0.9, 0.6, 0.1], [0.7, 0.2, 0.1]], [[1, 1, 0], [1, 1, 1]])
        >>> found.shown.tolist()
        [[1.0, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
        >>> found.pairs()
        [(0, 1, -0.5), (0, 2, -0.5), (1, 2, -0.5)]
    """
    p, wanted, given = decisions(probabilities, targets, known)
    shown = (at_least(p, threshold) & given).astype(np.float64)
    both = given.T.astype(np.float64) @ given
    present = None if wanted is None else _pairs(wanted, both)
    return Together(_pairs(shown, both), present)


def _pairs(labels: Array, pictures: Array) -> Array:
    """Share of the pictures with each pair; a label with itself is that label."""
    counts = labels.T @ labels
    np.fill_diagonal(counts, labels.sum(axis=0))
    return ratio(counts, pictures)
