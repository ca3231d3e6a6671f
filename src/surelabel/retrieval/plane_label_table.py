"""Read the log-odds of the labels of a shard from the two planes of their sort keys."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from surelabel.retrieval.formula_probability import LogProbability, log_sigmoid
from surelabel.retrieval.label_encoding import StepTable
from surelabel.retrieval.label_table import RowMask, RowNumbers
from surelabel.retrieval.score_bounds import bounds_of_high_plane
from surelabel.retrieval.shard_files import ShardFiles
from surelabel.retrieval.sort_keys import (
    Floats32,
    SortKeys,
    floats_of_sort_keys,
    join_key_planes,
    sort_key_of_float,
)


@dataclass(frozen=True)
class PlaneLabelTable:
    """Label table of a shard of index version 2; see ``IndexLabelTable``.

    A scan for a threshold reads only the high plane. Therefore, it also selects rows below the
    threshold whose key has the same high 16 bits as the threshold.

    Attributes:
        files: Files of the shard.
        is_active: True for rows that were not removed, ``(n,)``. If None, no row was removed.
    """

    files: ShardFiles
    is_active: RowMask | None = None

    @property
    def n_rows(self) -> int:
        """Return the number of rows, including removed rows."""
        return self.files.layout.n_rows

    def logits(self, column: int, rows: RowNumbers | slice) -> Floats32:
        """Return the log-odds of some rows of a label."""
        values = floats_of_sort_keys(self._keys(column, rows))
        steps = self._steps(column)
        return values if steps is None else steps.logits_of_scores(values)

    def tie_values(self, column: int, rows: RowNumbers | slice) -> Floats32:
        """Return the raw scores of some rows of a label, or the log-odds without raw scores."""
        scores = self.files.score_line(column)
        return floats_of_sort_keys(self._keys(column, rows)) if scores is None else scores[rows]

    def stored_scores(self, column: int, rows: RowNumbers | slice) -> Floats32 | None:
        """Return the raw scores of some rows of a label, or None if they are not stored."""
        is_unscored = column in self.files.layout.unscored_columns
        return None if is_unscored else self.tie_values(column, rows)

    def clear_below_threshold(
        self,
        column: int,
        sign: int,
        lowest_logit: float,
        rows: slice,
        out: RowMask,
    ) -> None:
        """Clear the mask of rows whose signed log-odds are below a threshold.

        Args:
            column: Column of the label.
            sign: 1 for the log-odds, -1 for the negated log-odds.
            lowest_logit: Threshold of the signed log-odds.
            rows: Rows of the mask.
            out: Mask that is changed in place. Rows slightly below the threshold can remain.
        """
        high = self.files.arrays["high"][column, rows]
        limit = np.uint16(max(self._key_limit(column, sign, lowest_logit), 0) >> 16)
        out &= high >= limit if sign > 0 else high <= limit

    def score_bounds(
        self, column: int, sign: int, rows: RowNumbers, *, is_upper: bool
    ) -> LogProbability:
        """Return bounds of the log probability of a literal for some rows.

        The bounds are read from the high plane. If the label has a step table, they are exact.

        Args:
            column: Column of the label.
            sign: 1 or -1.
            rows: Row numbers.
            is_upper: If True, upper bounds are returned; otherwise, lower bounds.
        """
        if self._steps(column) is not None:
            return log_sigmoid(sign * self.logits(column, rows))
        high = self.files.arrays["high"][column].take(rows)
        return bounds_of_high_plane(high, sign, is_upper=is_upper)

    def best_rows(self, column: int, sign: int, count: int) -> RowNumbers:
        """Return the rows with the largest signed log-odds, of the rows that are stored in order.

        Args:
            column: Column of the label.
            sign: 1 for the log-odds, -1 for the negated log-odds.
            count: Maximum number of rows.
        """
        return np.asarray(self._ordered_rows(column, sign)[:count], np.int64)

    def count_reaching(self, column: int, sign: int, lowest_logit: float) -> int | None:
        """Count the rows whose signed log-odds reach a threshold.

        Returns:
            Number of rows, or None if rows that are not stored in order can also reach the
            threshold, because all rows that are stored in order do.
        """
        limit, rows = self._key_limit(column, sign, lowest_logit), self._ordered_rows(column, sign)
        high, low = (self.files.arrays[name][column] for name in ("high", "low"))

        def is_below(place: int) -> bool:
            row = rows[place]
            key = (int(high[row]) << 16) | int(low[row])
            return key < limit if sign > 0 else key > limit

        count = bisect_left(range(len(rows)), True, key=is_below)
        return count if count < len(rows) or count == self.n_rows else None

    def _keys(self, column: int, rows: RowNumbers | slice) -> SortKeys:
        high, low = (self.files.arrays[name][column] for name in ("high", "low"))
        return join_key_planes(high[rows], low[rows])

    def _ordered_rows(self, column: int, sign: int) -> npt.NDArray[np.int32]:
        """Return the stored order of the rows of a label, for a sign.

        Raises:
            DataError: If a row number is out of range because the file is damaged.
        """
        name = "first" if sign > 0 else "last"
        rows: npt.NDArray[np.int32] = self.files.arrays[name][column]
        if (name, column) not in self._checked_orders:
            if len(rows) and not 0 <= rows.min() <= rows.max() < self.n_rows:
                reason = f"row numbers of label {column} must be in [0, {self.n_rows})"
                raise self.files.damage_error(name, reason)
            self._checked_orders.add((name, column))
        return rows

    def _key_limit(self, column: int, sign: int, lowest_logit: float) -> int:
        """Return the lowest key that reaches a threshold, or the highest such key for the sign -1.

        If no key reaches the threshold, the limit can be -1.
        """
        limit, steps = _nearest_reaching_float(sign, lowest_logit), self._steps(column)
        if steps is None:
            return sort_key_of_float(limit)
        if sign > 0:
            return sort_key_of_float(steps.lowest_score(limit))
        return sort_key_of_float(steps.score_above(limit)) - 1

    def _steps(self, column: int) -> StepTable | None:
        if column not in self._step_tables:
            self._step_tables[column] = self.files.read_step_table(column)
        return self._step_tables[column]

    @cached_property
    def _checked_orders(self) -> set[tuple[str, int]]:
        """Return the arrays and columns whose row numbers were checked."""
        return set()

    @cached_property
    def _step_tables(self) -> dict[int, StepTable | None]:
        """Return the step tables that were read, by column."""
        return {}


def _nearest_reaching_float(sign: int, lowest_logit: float) -> np.float32:
    """Return the float32 log-odds that reach a threshold after a sign, and are nearest to it."""
    limit = np.float32(sign * lowest_logit)
    if sign * float(limit) < lowest_logit:
        limit = np.nextafter(limit, np.float32(sign * np.inf))
    return limit
