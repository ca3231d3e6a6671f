"""Read the log-odds of the labels of a shard in sparse form."""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import numpy.typing as npt

from surelabel.retrieval.formula_probability import LogProbability, log_sigmoid
from surelabel.retrieval.label_table import LogitArray, RowMask, RowNumbers
from surelabel.retrieval.shard_files import ShardFiles
from surelabel.retrieval.sort_keys import rows_of_largest_keys, sort_keys_of_floats
from surelabel.retrieval.sparse_labels import SparseLabel

CACHED_LABEL_BYTES = 1 << 28  # of the labels of a shard that stay in memory


@dataclass(frozen=True)
class SparseLabelTable:
    """Label table of a shard in sparse form; see ``IndexLabelTable``.

    A label is read at its first use, and the labels that were used last stay in memory. Several
    threads can read the table at the same time.

    Attributes:
        files: Files of the shard.
        is_active: True for rows that were not removed, ``(n,)``. If None, no row was removed.
    """

    files: ShardFiles
    is_active: RowMask | None = None
    _labels: OrderedDict[int, SparseLabel] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        """Return the number of rows, including removed rows."""
        return self.files.layout.n_rows

    def logits(self, column: int, rows: RowNumbers | slice) -> LogitArray:
        """Return the log-odds of some rows of a label."""
        label = self._label(column)
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_rows)
            if step == 1:
                values = np.full(max(stop - start, 0), label.default)
                stored = _rows_between(label, start, stop)
                values[label.rows[stored] - start] = label.logits[stored]
                return values
            rows = np.arange(self.n_rows)[rows]
        wanted = np.asarray(rows, np.int32)  # searchsorted would copy all stored rows to int64
        values = np.full(len(wanted), label.default)
        if len(label.rows):
            places = np.minimum(np.searchsorted(label.rows, wanted), len(label.rows) - 1)
            is_stored = label.rows[places] == wanted
            values[is_stored] = label.logits[places[is_stored]]
        return values

    def tie_values(self, column: int, rows: RowNumbers | slice) -> LogitArray:
        """Return the log-odds of some rows of a label; raw scores are not stored."""
        return self.logits(column, rows)

    def clear_below_threshold(
        self, column: int, sign: int, lowest_logit: float, rows: slice, out: RowMask
    ) -> None:
        """Clear the mask of rows whose signed log-odds are below a threshold."""
        label = self._label(column)
        start, stop, _ = rows.indices(self.n_rows)
        stored = _rows_between(label, start, stop)
        is_reached = _signed(label.logits[stored], sign) >= lowest_logit
        if sign * float(label.default) >= lowest_logit:
            out[label.rows[stored][~is_reached] - start] = False
        else:
            is_candidate = np.zeros_like(out)
            is_candidate[label.rows[stored][is_reached] - start] = True
            out &= is_candidate

    def score_bounds(
        self, column: int, sign: int, rows: RowNumbers, *, is_upper: bool
    ) -> LogProbability:
        """Return the log probability of a literal for some rows, which is its own bound."""
        return log_sigmoid(sign * self.logits(column, rows))

    def best_rows(self, column: int, sign: int, count: int) -> RowNumbers:
        """Return at most ``count`` rows with the largest signed log-odds, the largest first.

        Rows of equal log-odds are sorted by row number. Dropped rows have equal log-odds, below
        those of the stored rows.
        """
        label = self._label(column)
        count = min(count, self.n_rows)
        n_dropped = self.n_rows - len(label.rows)
        n_stored = min(count, len(label.rows)) if sign > 0 else max(count - n_dropped, 0)
        keys = sort_keys_of_floats(label.logits)
        places = rows_of_largest_keys(keys if sign > 0 else ~keys, n_stored)
        stored = label.rows[places].astype(np.int64)
        dropped = _first_dropped_rows(label, count - n_stored)
        return np.concatenate([stored, dropped] if sign > 0 else [dropped, stored])

    def count_reaching(self, column: int, sign: int, lowest_logit: float) -> int | None:
        """Return the number of stored rows that reach a threshold, or None if dropped rows do."""
        label = self._label(column)
        if len(label.rows) < self.n_rows and sign * float(label.default) >= lowest_logit:
            return None
        return int(np.count_nonzero(_signed(label.logits, sign) >= lowest_logit))

    def _label(self, column: int) -> SparseLabel:
        """Return a label, which is read from the file unless it is in memory."""
        with self._lock:
            label = self._labels.get(column)
            if label is not None:
                self._labels.move_to_end(column)
                return label
        label = self.files.read_sparse_label(column)
        with self._lock:
            self._labels[column] = label
            n_bytes = sum(map(_label_bytes, self._labels.values()))
            while n_bytes > CACHED_LABEL_BYTES and len(self._labels) > 1:
                n_bytes -= _label_bytes(self._labels.popitem(last=False)[1])
        return label


def _rows_between(label: SparseLabel, start: int, stop: int) -> slice:
    """Return the places of the stored rows in [start, stop)."""
    return slice(*np.searchsorted(label.rows, np.array([start, stop], np.int32)).tolist())


def _first_dropped_rows(label: SparseLabel, count: int) -> npt.NDArray[np.int64]:
    """Return the first ``count`` rows that are not stored, in order."""
    n_dropped_before = label.rows - np.arange(len(label.rows))  # of each stored row
    numbers = np.arange(count)
    return numbers + np.searchsorted(n_dropped_before, numbers, side="right")


def _signed(logits: LogitArray, sign: int) -> npt.NDArray[np.float64]:
    """Return signed log-odds in float64, so that thresholds are not rounded to float32."""
    return sign * logits.astype(np.float64)


def _label_bytes(label: SparseLabel) -> int:
    return label.rows.nbytes + label.logits.nbytes
