"""Define the table of the log-odds of images and labels that a search reads."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from surelabel.retrieval.formula_probability import LogProbability, log_sigmoid

RowNumbers = npt.NDArray[np.int64]
LogitArray = npt.NDArray[np.float32]
RowMask = npt.NDArray[np.bool_]


class IndexLabelTable(Protocol):
    """Log-odds of the labels in all rows of a shard.

    For each label, some row numbers are also stored in the order of the log-odds. A sign of 1
    selects the log-odds of a label, and -1 its negated log-odds. All functions include removed
    rows.
    """

    @property
    def n_rows(self) -> int:
        """Return the number of rows, including removed rows."""

    @property
    def is_active(self) -> RowMask | None:
        """Return a mask of the rows that were not removed, ``(n,)``, or None without removals."""

    def logits(self, column: int, rows: RowNumbers | slice) -> LogitArray:
        """Return the log-odds of some rows of a label."""

    def tie_values(self, column: int, rows: RowNumbers | slice) -> LogitArray:
        """Return the raw scores of some rows of a label, or the log-odds without raw scores.

        They sort rows of equal log-odds.
        """

    def clear_below_threshold(
        self, column: int, sign: int, lowest_logit: float, rows: slice, out: RowMask
    ) -> None:
        """Clear the mask of rows whose signed log-odds are below a threshold.

        Args:
            column: Column of the label.
            sign: 1 or -1.
            lowest_logit: Threshold of the signed log-odds.
            rows: Rows of the mask.
            out: Mask that is changed in place. Rows slightly below the threshold can remain.
        """

    def score_bounds(
        self, column: int, sign: int, rows: RowNumbers, *, is_upper: bool
    ) -> LogProbability:
        """Return upper or lower bounds of the log probability of a literal for some rows.

        The bounds are close to the log probabilities, and take less time to read.
        """

    def best_rows(self, column: int, sign: int, count: int) -> RowNumbers:
        """Return at most ``count`` rows with the largest signed log-odds, the largest first."""

    def count_reaching(self, column: int, sign: int, lowest_logit: float) -> int | None:
        """Return the number of rows whose signed log-odds reach a threshold.

        If rows that are not stored in order can also reach the threshold, the value is None.
        """


@dataclass(frozen=True)
class FloatLabelTable:
    """Label table of arrays with a full order, as index version 1 stores them.

    Attributes:
        values: Log-odds, float32 in [-40, 40], ``(c, n)``.
        scores: Raw scores that break ties, float32, ``(c, n)``.
        order: Row numbers for each label, sorted by decreasing log-odds, int32, ``(c, n)``.
        is_active: True for rows that were not removed, ``(n,)``. If None, no row was removed.
    """

    values: LogitArray
    scores: LogitArray
    order: npt.NDArray[np.int32]
    is_active: RowMask | None = None

    @property
    def n_rows(self) -> int:
        """Return the number of rows, including removed rows."""
        return int(self.values.shape[1])

    def logits(self, column: int, rows: RowNumbers | slice) -> LogitArray:
        """Return the log-odds of some rows of a label."""
        return self.values[column, rows]

    def tie_values(self, column: int, rows: RowNumbers | slice) -> LogitArray:
        """Return the raw scores of some rows of a label."""
        return self.scores[column, rows]

    def clear_below_threshold(
        self, column: int, sign: int, lowest_logit: float, rows: slice, out: RowMask
    ) -> None:
        """Clear the mask of rows whose signed log-odds are below a threshold."""
        values = self.values[column, rows]
        limit = np.float32(sign * lowest_logit)
        out &= values >= limit if sign > 0 else values <= limit

    def score_bounds(
        self, column: int, sign: int, rows: RowNumbers, *, is_upper: bool
    ) -> LogProbability:
        """Return the log probability of a literal for some rows, which is both bounds."""
        return log_sigmoid(sign * self.values[column][rows])

    def best_rows(self, column: int, sign: int, count: int) -> RowNumbers:
        """Return at most ``count`` rows with the largest signed log-odds, the largest first."""
        order = self.order[column] if sign > 0 else self.order[column, ::-1]
        return np.asarray(order[:count], np.int64)

    def count_reaching(self, column: int, sign: int, lowest_logit: float) -> int:
        """Return the number of rows whose signed log-odds reach a threshold."""
        rows, low, high = self.order[column], 0, self.n_rows
        while low < high:
            middle = (low + high) // 2
            row = rows[middle] if sign > 0 else rows[-1 - middle]
            if sign * float(self.values[column, row]) >= lowest_logit:
                low = middle + 1
            else:
                high = middle
        return low
