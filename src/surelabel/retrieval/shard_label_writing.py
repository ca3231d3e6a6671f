"""Write the sort keys, ordered rows, step tables and raw scores of the labels of a shard."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.files import atomic_file
from surelabel.retrieval.label_encoding import EncodedLabel, StepTable
from surelabel.retrieval.shard_array_writing import AppendLines, open_shard_array
from surelabel.retrieval.shard_checksums import shard_checksum
from surelabel.retrieval.shard_files import STEP_TABLE_SCHEMA
from surelabel.retrieval.shard_layout import (
    COLUMN_LISTS,
    INDEX_VERSION,
    ORDERED_ROWS,
    ShardLayout,
)
from surelabel.retrieval.sort_keys import rows_of_largest_keys, split_sort_keys


class ShardLabelWriter:
    """Writer of the label files of a new shard, which writes one label after the other.

    Temporary files are written, and renamed when the stack of contexts is closed without an error.
    Files that no label needs are not created.

    Args:
        stack: Stack of the contexts of the open files.
        folder: Folder of the index.
        number: Number of the new shard.
        n_rows: Number of rows.

    Attributes:
        checksums: Checksums of the labels that were written, by name of the array.
    """

    def __init__(self, stack: ExitStack, folder: Path, number: int, n_rows: int) -> None:
        self._stack, self._folder, self._number = stack, folder, number
        self._n_rows = n_rows
        self._columns: dict[str, list[int]] = {name: [] for name in COLUMN_LISTS}
        self._appends: dict[str, AppendLines] = {}
        self._steps: pq.ParquetWriter | None = None
        self.checksums: dict[str, list[int]] = {name: [] for name in self.layout.checksummed}
        for name, layout in self.layout.arrays(0).items():
            if name in self.checksums:
                self._open_array(name, layout.shape[1], layout.dtype)

    @property
    def layout(self) -> ShardLayout:
        """Return the layout of the shard with the labels that were written."""
        columns = (tuple(self._columns[name]) for name in COLUMN_LISTS)
        return ShardLayout(self._n_rows, INDEX_VERSION, *columns)

    def write(self, column: int, label: EncodedLabel) -> None:
        """Write the sort keys, ordered rows, raw scores and step table of the next label.

        Args:
            column: Column of the label.
            label: Encoded log-odds and raw scores of all rows.

        Raises:
            DataError: If a file cannot be written.
        """
        high, low = split_sort_keys(label.keys)
        self._append_line("high", high)
        self._append_line("low", low)
        self._append_line("first", rows_of_largest_keys(label.keys, ORDERED_ROWS))
        self._append_line("last", rows_of_largest_keys(~label.keys, ORDERED_ROWS))
        if label.scores is not None and "scores" not in self._appends:
            self._open_array("scores", self._n_rows, np.float32)
        self._append_line("scores", label.scores)
        if label.steps is not None:
            self._write_steps(column, label.steps)
            self._columns["step_columns"].append(column)
        if label.scores is not None:
            self._columns["score_columns"].append(column)
        if not label.has_scores:
            self._columns["unscored_columns"].append(column)

    def _open_array(self, name: str, width: int, dtype: npt.DTypeLike) -> None:
        file = self._folder / f"{name}-{self._number:03}.npy"
        self._appends[name] = self._stack.enter_context(open_shard_array(file, width, dtype))

    def _append_line(self, name: str, line: npt.NDArray[Any] | None) -> None:
        """Append a line and its checksum; if ``line`` is None, append the checksum of no values."""
        if line is not None:
            self._appends[name](line)
        self.checksums[name].append(shard_checksum(np.empty(0) if line is None else line))

    def _write_steps(self, column: int, steps: StepTable) -> None:
        """Write the step table of a label as one row group."""
        if self._steps is None:
            file = self._folder / f"steps-{self._number:03}.parquet"
            temporary = self._stack.enter_context(atomic_file(file))
            self._steps = self._stack.enter_context(
                pq.ParquetWriter(
                    temporary, STEP_TABLE_SCHEMA, compression="zstd", write_page_checksum=True
                )
            )
        columns = [np.full(len(steps.scores), column, np.int32), steps.scores, steps.logits]
        self._steps.write_table(pa.table(columns, schema=STEP_TABLE_SCHEMA))
