"""Log-odds of the labels of a shard, read from the two planes of their sort keys."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from surelabel.retrieval.label_encoding import StepTable
from surelabel.retrieval.label_table import RowMask, RowNumbers
from surelabel.retrieval.shard_files import ShardFiles
from surelabel.retrieval.sort_keys import (
    Floats32,
    SortKeys,
    floats_of_sort_keys,
    join_key_planes,
    sort_keys_of_floats,
)


@dataclass(frozen=True)
class PlaneLabelTable:
    """Label table of a shard of index version 2; see ``IndexLabelTable``.

    A scan for a threshold reads the high plane only, so it also selects rows whose key has the high
    half of the threshold.

    Attributes:
        files: Files of the shard.
        is_active: True for rows that were not removed, ``(n,)``. If None, no row was removed.
    """

    files: ShardFiles
    is_active: RowMask | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows, including removed rows."""
        return self.files.layout.n_rows

    def logits(self, column: int, rows: RowNumbers | slice) -> Floats32:
        """Return the log-odds of some rows of a label."""
        values = floats_of_sort_keys(self._keys(column, rows))
        steps = self._steps(column)
        return values if steps is None else steps.logits_of_scores(values)

    def tie_values(self, column: int, rows: RowNumbers | slice) -> Floats32:
        """Return the raw scores of some rows of a label, or its log-odds without raw scores."""
        scores = self.files.score_line(column)
        return floats_of_sort_keys(self._keys(column, rows)) if scores is None else scores[rows]

    def stored_scores(self, column: int, rows: RowNumbers | slice) -> Floats32 | None:
        """Return the raw scores of some rows of a label, or None if they are not stored."""
        is_unscored = column in self.files.layout.unscored_columns
        return None if is_unscored else self.tie_values(column, rows)

    def reaches(
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
            out: Mask that is changed. Some rows that are slightly below the threshold remain.
        """
        high = self.files.arrays["high"][column, rows]
        limit = np.uint16(max(self._key_limit(column, sign, lowest_logit), 0) >> 16)
        out &= high >= limit if sign > 0 else high <= limit

    def best_rows(self, column: int, sign: int, count: int) -> RowNumbers:
        """Return the rows with the largest signed log-odds among those that are stored in order.

        Args:
            column: Column of the label.
            sign: 1 for the log-odds, -1 for the negated log-odds.
            count: Maximum number of rows.
        """
        return np.asarray(self._ordered_rows(column, sign)[:count], np.int64)

    def count_reaching(self, column: int, sign: int, lowest_logit: float) -> int | None:
        """Count the rows whose signed log-odds reach a threshold.

        Returns:
            Number of rows, or None if rows that are not stored in order also reach the threshold.
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
        arrays = self.files.arrays
        return join_key_planes(arrays["high"][column, rows], arrays["low"][column, rows])

    def _ordered_rows(self, column: int, sign: int) -> npt.NDArray[np.int32]:
        """Return the rows of a label that are stored in order, for a sign.

        Raises:
            DataError: If a row number is out of range, so the file is damaged.
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
        """Return the lowest key that reaches a threshold, or the highest one if the sign is -1.

        If no key reaches the threshold, the limit can be -1.
        """
        limit, steps = _nearest_reaching_float(sign, lowest_logit), self._steps(column)
        if steps is None:
            return int(sort_keys_of_floats(limit))
        if sign > 0:
            return int(sort_keys_of_floats(steps.lowest_score(limit)))
        return int(sort_keys_of_floats(steps.score_above(limit))) - 1

    def _steps(self, column: int) -> StepTable | None:
        if column not in self._step_tables:
            self._step_tables[column] = self.files.read_step_table(column)
        return self._step_tables[column]

    @cached_property
    def _checked_orders(self) -> set[tuple[str, int]]:
        """Arrays and columns whose row numbers were checked."""
        return set()

    @cached_property
    def _step_tables(self) -> dict[int, StepTable | None]:
        """Step tables that were read, by column."""
        return {}


def _nearest_reaching_float(sign: int, lowest_logit: float) -> np.float32:
    """Return the float32 log-odds nearest to a threshold whose signed value reaches it."""
    limit = np.float32(sign * lowest_logit)
    if sign * float(limit) < lowest_logit:
        limit = np.nextafter(limit, np.float32(sign * np.inf))
    return limit
