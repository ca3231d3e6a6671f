"""Map the files of an index shard into memory, and check the files for damage."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from mmap import mmap
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.array_files import map_array
from surelabel.errors import DataError
from surelabel.file_readers import check_regular_file
from surelabel.retrieval.file_state import FILE_STATE_FIELDS, FILE_STATE_SCHEMA
from surelabel.retrieval.label_encoding import (
    MAX_STEPS,
    StepTable,
    describe_step_table_damage,
)
from surelabel.retrieval.shard_checksums import shard_checksum
from surelabel.retrieval.shard_layout import ArrayLayout, ShardLayout
from surelabel.retrieval.sort_keys import (
    floats_of_sort_keys,
    join_key_planes,
    sort_keys_of_floats,
    split_sort_keys,
)
from surelabel.retrieval.sparse_labels import (
    SPARSE_LABEL_SCHEMA,
    SparseLabel,
    describe_sparse_label_damage,
)

FINITE_HIGH, _ = split_sort_keys(  # lowest and highest value in the high plane
    sort_keys_of_floats([np.finfo(np.float32).min, np.finfo(np.float32).max])
)
VERSION_1_SCHEMA = pa.schema(FILE_STATE_FIELDS)
STEP_TABLE_SCHEMA = pa.schema({"column": pa.int32(), "score": pa.float32(), "logit": pa.float32()})


@dataclass(frozen=True)
class ShardFiles:
    """Files of a shard, which are opened at the first read and stay open.

    Arrays are mapped into memory. All arrays are opened together, and so are all tables.

    Attributes:
        folder: Folder of the index.
        number: Shard number, which is part of the file names.
        sizes: Expected size of each file in bytes, by file name.
        layout: Version, number of rows and encodings of the labels.
    """

    folder: Path
    number: int
    sizes: dict[str, int]
    layout: ShardLayout
    _table_lock: Lock = field(  # of the tables, which only one thread can read at a time
        default_factory=Lock, init=False, repr=False, compare=False
    )

    def read_columns(self, names: Sequence[str] | None = None) -> pa.Table:
        """Read columns of the table of all rows from disk, without caching them.

        Args:
            names: Names of the columns. If None, all columns are read.

        Raises:
            DataError: If the table is damaged.
        """
        return self._checked_paths(self._read_table("rows", lambda rows: rows.read(columns=names)))

    def read_path_group(self, group: int) -> pa.ChunkedArray:
        """Return the stored paths of one row group of the table of all rows.

        Raises:
            DataError: If the table is damaged.
        """
        table = self._read_table("rows", lambda rows: rows.read_row_group(group, columns=["path"]))
        return self._checked_paths(table)["path"]

    def read_row(self, row: int, names: Sequence[str]) -> dict[str, Any]:
        """Return columns of one row of the table of all rows, by name of the column.

        The row group that contains the row is read from disk.

        Args:
            row: Row number, in [0, n).
            names: Names of the columns.

        Raises:
            DataError: If the table is damaged.
        """
        group = int(np.searchsorted(self.path_group_ends, row, side="right"))
        first = int(self.path_group_ends[group - 1]) if group else 0
        table = self._read_table("rows", lambda rows: rows.read_row_group(group, columns=names))
        values: dict[str, Any] = table.slice(row - first, 1).to_pylist()[0]
        return values

    def _checked_paths(self, table: pa.Table) -> pa.Table:
        """Return a table of rows, after a check that no path is empty."""
        if "path" in table.column_names and table["path"].null_count:
            raise self.damage_error("rows", "a path is missing")
        return table

    @cached_property
    def path_group_ends(self) -> npt.NDArray[np.int64]:
        """Return the row number after the last row of each row group of the table of all rows."""
        metadata = self._parquet_files["rows"].metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        return np.cumsum(sizes)

    def read_step_table(self, column: int) -> StepTable | None:
        """Return the step table of a label, or None if its keys are the log-odds.

        The number of steps is compared with its limit before the table is read.

        Raises:
            DataError: If the file of the step tables is damaged.
        """
        if column not in self.layout.step_columns:
            return None
        group = self.layout.step_columns.index(column)
        file, limit = self._parquet_files["steps"], min(MAX_STEPS, self.layout.n_rows)
        if file.schema_arrow != STEP_TABLE_SCHEMA:
            raise self.damage_error("steps", f"expected the columns {STEP_TABLE_SCHEMA.names}")
        n_steps = file.metadata.row_group(group).num_rows
        if not 1 <= n_steps <= limit:
            raise self.damage_error("steps", f"expected 1 to {limit} steps, got {n_steps}")
        scores, logits = self._read_label_group("steps", group, column, "step table")
        steps = StepTable(scores, logits)
        if damage := describe_step_table_damage(steps, self._lowest_score(column)):
            raise self.damage_error("steps", f"label {column}: {damage}")
        return steps

    def read_sparse_label(self, column: int) -> SparseLabel:
        """Return the log-odds of a label of a shard in sparse form.

        The number of stored rows is compared with the manifest before the rows are read.

        Raises:
            DataError: If the file of the sparse labels is damaged.
        """
        defaults, counts = self.layout.sparse_defaults, self.layout.sparse_counts
        assert defaults is not None
        assert counts is not None
        file, expected = self._parquet_files["sparse"], counts[column]
        count = file.metadata.row_group(column).num_rows
        if count != expected:
            reason = f"expected {expected} log-odds of label {column}, got {count}"
            raise self.damage_error("sparse", reason)
        rows, logits = self._read_label_group("sparse", column, column, "table")
        label = SparseLabel(rows, logits, np.float32(defaults[column]))
        if damage := describe_sparse_label_damage(label, self.layout.n_rows):
            raise self.damage_error("sparse", f"label {column}: {damage}")
        return label

    def _read_label_group(
        self, name: str, group: int, column: int, description: str
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the two columns of a row group of a label, after the column of the label.

        Args:
            name: Name of the table, such as ``steps``.
            group: Number of the row group.
            column: Column of the label, which all rows of the group must contain.
            description: Term for the row group in errors.
        """
        table = self._read_table(name, lambda labels: labels.read_row_group(group))
        columns = [values.combine_chunks() for values in table.columns]
        if any(values.null_count for values in columns):
            raise self.damage_error(name, f"the {description} of label {column} has empty cells")
        label, first, second = map(_values_of_column, columns)
        if (label != column).any():
            raise self.damage_error(name, f"expected the {description} of label {column}")
        return first, second

    def _lowest_score(self, column: int) -> np.float32:
        """Return the lowest value that the keys of a label encode, without the stored order."""
        high, low = (self.arrays[name][column] for name in ("high", "low"))
        lowest_high = high.min()
        lowest_low = low[high == lowest_high].min()
        return np.float32(floats_of_sort_keys(join_key_planes(lowest_high, lowest_low)))

    def score_line(self, column: int) -> npt.NDArray[np.float32] | None:
        """Return the raw scores of a label, or None if they are not stored separately."""
        if self.layout.version == 1:
            return np.asarray(self.arrays["scores"][column])
        if column not in self.layout.score_columns:
            return None
        return np.asarray(self.arrays["scores"][self.layout.score_columns.index(column)])

    @cached_property
    def _parquet_files(self) -> dict[str, pq.ParquetFile]:
        """Return the tables of the shard, open for reading, by name."""
        names = self.layout.table_names()
        return {name: self._read(name, _open_shard_parquet) for name in names}

    def _read_table(self, name: str, reader: Callable[[pq.ParquetFile], pa.Table]) -> pa.Table:
        file = self._parquet_files[name]
        with self._table_lock:
            return self._read(name, lambda _: reader(file))

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """Return the arrays of all files, mapped into memory, by name."""
        names = self.layout.array_names()
        names += ["features"] if f"features-{self.number:03}.npy" in self.sizes else []
        return {name: self._read(name, map_array) for name in names}

    @cached_property
    def _mappings(self) -> dict[str, mmap]:
        """Return the memory mappings by array name; empty arrays are not mapped."""
        mappings = {name: _mapping_of_shard_array(a) for name, a in self.arrays.items()}
        return {name: mapping for name, mapping in mappings.items() if mapping is not None}

    @cached_property
    def _checksums(self) -> npt.NDArray[np.uint32]:
        return np.array(self.arrays["checksums"])

    @cached_property
    def _verified_columns(self) -> set[int]:
        """Return the columns whose checksums `verify_checksums` has compared."""
        return set()

    def check(self, n_labels: int) -> None:
        """Open every file and check its size and shape.

        The files stay open, so that the shard can be read after another process replaced the files.

        Args:
            n_labels: Number of labels of the index, c.

        Raises:
            DataError: If a file is missing or cannot be read. Also if its size, its shape, its data
                type or the columns of a table differ from the manifest.
        """
        for name, size in self.sizes.items():
            file = self.folder / name
            actual_size = _shard_file_size(file)
            if actual_size != size:
                actual = "no file" if actual_size is None else f"{actual_size} bytes"
                raise _damaged_shard_error(file, f"expected {size} bytes, got {actual}")
        for name, expected in self.layout.arrays(n_labels).items():
            array = self._checksums if name == "checksums" else self.arrays[name]
            self._check_array(name, array, expected)
        schema = self._parquet_files["rows"].schema_arrow
        expected_schema = FILE_STATE_SCHEMA if self.layout.version > 1 else VERSION_1_SCHEMA
        if not schema.equals(expected_schema):
            raise self.damage_error("rows", f"expected the columns {expected_schema.names}")
        if self._parquet_files["rows"].metadata.num_rows != self.layout.n_rows:
            raise self.damage_error("rows", f"expected {self.layout.n_rows} rows")
        if self.layout.is_sparse:
            table = self._parquet_files["sparse"]
            if table.schema_arrow != SPARSE_LABEL_SCHEMA:
                reason = f"expected the columns {SPARSE_LABEL_SCHEMA.names}"
                raise self.damage_error("sparse", reason)
            if table.metadata.num_row_groups != n_labels:
                raise self.damage_error("sparse", f"expected {n_labels} row groups")
        n_steps = len(self.layout.step_columns)
        if n_steps and self._parquet_files["steps"].metadata.num_row_groups != n_steps:
            raise self.damage_error("steps", f"expected {n_steps} step tables")
        features = self.arrays.get("features")
        if features is not None:
            width = features.shape[1] if features.ndim == 2 else 0
            expected = ArrayLayout(np.dtype(np.float16), (self.layout.n_rows, width))
            self._check_array("features", features, expected)

    def check_not_truncated(self) -> None:
        """Check that no mapped file became shorter than its mapping; it takes microseconds.

        A read beyond the end of a mapped file terminates the process with the signal SIGBUS. This
        can still happen if another program truncates a file between this check and the read.

        Raises:
            DataError: If a file became shorter.
        """
        for name, memory in self._mappings.items():
            if memory.size() < len(memory):
                reason = f"expected {len(memory)} bytes, got {memory.size()} bytes"
                raise self.damage_error(name, reason)

    def verify_checksums(self, columns: Iterable[int]) -> None:
        """Compare the arrays of the given labels with their checksums, once for each label.

        Also check that the sort keys of the labels are those of finite values. The values of a
        shard in sparse form are checked when they are read.

        Args:
            columns: Columns of the labels.

        Raises:
            DataError: If a file is damaged, that is, if a checksum does not match, a value is not
                finite, or a file was truncated.
        """
        self.check_not_truncated()
        if self.layout.is_sparse:
            return
        for column in set(columns) - self._verified_columns:
            for name, checksums in zip(self.layout.checksummed, self._checksums, strict=True):
                if shard_checksum(self._checksummed_line(name, column)) != checksums[column]:
                    raise self.damage_error(name, f"the checksum of label {column} does not match")
            self._check_keys_are_finite(column)
            self._verified_columns.add(column)

    def _check_keys_are_finite(self, column: int) -> None:
        """Check that no sort key of a label decodes to infinity or NaN.

        The high plane is sufficient for the check. All its values are compared, because the stored
        order of the rows can be damaged.
        """
        high = self.arrays["high"][column] if self.layout.version > 1 else np.empty(0, np.uint16)
        if len(high) and not FINITE_HIGH[0] <= high.min() <= high.max() <= FINITE_HIGH[1]:
            raise self.damage_error("high", f"the values of label {column} must be finite")

    def damage_error(self, name: str, reason: str) -> DataError:
        """Return the error for a damaged file.

        Args:
            name: Name of the file without number and suffix, such as ``logits``.
            reason: Clause that describes the damage.
        """
        return _damaged_shard_error(self._path(name), reason)

    def _checksummed_line(self, name: str, column: int) -> npt.NDArray[Any]:
        """Return the line of a label in an array, or an empty array if no line is stored."""
        if name != "scores":
            return np.asarray(self.arrays[name][column])
        scores = self.score_line(column)
        return np.empty(0, np.float32) if scores is None else scores

    def _check_array(self, name: str, array: npt.NDArray[Any], expected: ArrayLayout) -> None:
        if (array.shape, array.dtype) != (expected.shape, expected.dtype):
            actual = f"{array.shape} of {array.dtype.str}"
            raise self.damage_error(name, f"expected shape {expected.shape}, got {actual}")

    def _path(self, name: str) -> Path:
        suffix = "parquet" if name in ("rows", "steps", "sparse") else "npy"
        return self.folder / f"{name}-{self.number:03}.{suffix}"

    def _read(self, name: str, reader: Callable[[Path], Any]) -> Any:
        try:
            return reader(self._path(name))
        except (OSError, ValueError, pa.ArrowInvalid) as error:
            raise self.damage_error(name, "the file cannot be read") from error


def _shard_file_size(file: Path) -> int | None:
    """Return the size of a shard file in bytes, or None if the file cannot be read."""
    try:
        return file.stat().st_size
    except OSError:
        return None


def _mapping_of_shard_array(array: npt.NDArray[Any]) -> mmap | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap) else None


def _values_of_column(values: pa.Array) -> npt.NDArray[Any]:
    """Return a column without empty cells as an array; ``to_numpy`` would import pandas."""
    return np.asarray(np.from_dlpack(values))


def _open_shard_parquet(file: Path) -> pq.ParquetFile:
    check_regular_file(file)
    return pq.ParquetFile(file, page_checksum_verification=True)


def _damaged_shard_error(file: Path, reason: str) -> DataError:
    return DataError(
        f"{file} is damaged: {reason}. Restore the file, or build the index again "
        f"(`surelabel index`)."
    )
