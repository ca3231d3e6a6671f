"""Define a label table with the log-odds of sentences in additional columns."""

from dataclasses import dataclass

import numpy as np

from surelabel.retrieval.formula_probability import LogProbability, log_sigmoid
from surelabel.retrieval.label_table import IndexLabelTable, LogitArray, RowMask, RowNumbers


@dataclass(frozen=True)
class SentenceLabelTable:
    """Label table whose last columns are sentences; see ``IndexLabelTable``.

    Attributes:
        table: Log-odds of the labels.
        n_labels: Number of labels, c.
        sentence_logits: Log-odds of the sentences, float32, ``(s, n)``.
    """

    table: IndexLabelTable
    n_labels: int
    sentence_logits: LogitArray

    @property
    def n_rows(self) -> int:
        """Return the number of rows, including removed rows."""
        return self.table.n_rows

    @property
    def is_active(self) -> RowMask | None:
        """Return a mask of the rows that were not removed, ``(n,)``, or None without removals."""
        return self.table.is_active

    def logits(self, column: int, rows: RowNumbers | slice) -> LogitArray:
        """Return the log-odds of some rows of a label or sentence."""
        if column < self.n_labels:
            return self.table.logits(column, rows)
        return self._line(column)[rows]

    def tie_values(self, column: int, rows: RowNumbers | slice) -> LogitArray:
        """Return the raw scores of some rows of a label, or the log-odds of a sentence."""
        if column < self.n_labels:
            return self.table.tie_values(column, rows)
        return self._line(column)[rows]

    def clear_below_threshold(
        self, column: int, sign: int, lowest_logit: float, rows: slice, out: RowMask
    ) -> None:
        """Clear the mask of rows whose signed log-odds are below a threshold."""
        if column < self.n_labels:
            self.table.clear_below_threshold(column, sign, lowest_logit, rows, out)
        else:
            out &= sign * self._line(column)[rows] >= lowest_logit

    def score_bounds(
        self, column: int, sign: int, rows: RowNumbers, *, is_upper: bool
    ) -> LogProbability:
        """Return bounds of the log probability of a literal; those of a sentence are exact."""
        if column < self.n_labels:
            return self.table.score_bounds(column, sign, rows, is_upper=is_upper)
        return log_sigmoid(sign * self._line(column)[rows])

    def best_rows(self, column: int, sign: int, count: int) -> RowNumbers:
        """Return at most ``count`` rows with the largest signed log-odds, the largest first."""
        if column < self.n_labels:
            return self.table.best_rows(column, sign, count)
        values = -sign * self._line(column)
        count = min(count, len(values))
        if count < len(values):
            smallest = np.argpartition(values, count)[:count]
            return smallest[np.argsort(values[smallest], kind="stable")]
        return np.argsort(values, kind="stable")

    def count_reaching(self, column: int, sign: int, lowest_logit: float) -> int | None:
        """Return the number of rows that reach a threshold; see ``IndexLabelTable``."""
        if column < self.n_labels:
            return self.table.count_reaching(column, sign, lowest_logit)
        return int(np.count_nonzero(sign * self._line(column) >= lowest_logit))

    def _line(self, column: int) -> LogitArray:
        line: LogitArray = self.sentence_logits[column - self.n_labels]
        return line
