"""Index shards: groups of files for a part of the indexed images.

A row is an image, and all files of a shard have the same rows. Files are never modified.

    rows-000.parquet     path, bytes, mtime_ns, hash of each image
    logits-000.npy       log-odds, float32, (c, n)
    scores-000.npy       raw scores that break ties, float32, (c, n)
    order-000.npy        rows for each label, sorted by decreasing logit, int32, (c, n)
    checksums-000.npy    checksums of logits, scores and order of each label, uint32, (3, c)
    features-000.npy     image features, float16, (n, d); optional

Log-odds are float32, because float16 rounds values near 40 to multiples of 0.03 and makes distinct
values equal. Paths are stored relative to the root of the index. Version 1 has absolute paths and
checksums of logits and order only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from surelabel.array_files import map_array
from surelabel.errors import DataError
from surelabel.file_readers import check_regular_file
from surelabel.retrieval.conjunction_search import ConjunctionSearchLogits
from surelabel.retrieval.file_state import is_valid_file_state_path
from surelabel.retrieval.shard_checksums import extend_shard_checksum, shard_checksum
from surelabel.retrieval.shard_rows import LabelLine, ShardRows

INDEX_VERSION = 2
CHECKSUMMED_ARRAYS = {1: ("logits", "order"), INDEX_VERSION: ("logits", "scores", "order")}
FEATURE_BLOCK_ROWS = 1 << 14  # rows of features that are read at once
ARRAY_DTYPES = {
    "logits": np.dtype(np.float32),
    "scores": np.dtype(np.float32),
    "order": np.dtype(np.int32),
    "checksums": np.dtype(np.uint32),
}


@dataclass(frozen=True)
class Shard:
    """Shard on disk, mapped into memory; ``len`` returns the number of rows that were not removed.

    Attributes:
        folder: Folder of the index.
        number: Shard number, which is part of the file names.
        n_rows: Number of all rows, including removed rows.
        files: Size of each file in bytes, by file name.
        removed: Row numbers of the removed rows.
        features_checksum: Checksum of the image features. If the shard has no features, or has
            version 1, the value is None.
        version: Version of the index that contains the shard.
    """

    folder: Path
    number: int
    n_rows: int
    files: dict[str, int]
    removed: tuple[int, ...] = ()
    features_checksum: int | None = None
    version: int = INDEX_VERSION

    def __len__(self) -> int:
        return self.n_rows - len(self.removed)

    @classmethod
    def from_entry(
        cls, folder: Path, entry: dict[str, Any], version: int = INDEX_VERSION
    ) -> "Shard":
        """Create a shard from an entry of ``index.json``, as the inverse of `entry`.

        Raises:
            ValueError, KeyError, TypeError: If a field of the entry is missing or invalid.
        """
        number, n_rows, files, removed = (entry[k] for k in ("number", "rows", "files", "removed"))
        checksum = None if version == 1 else entry["features_checksum"]
        if not all(type(i) is int and i >= 0 for i in (number, n_rows, *files.values())):
            raise ValueError("number, rows and bytes must be whole numbers of 0 or more")
        required = {f"rows-{number:03}.parquet"}
        required |= {f"{name}-{number:03}.npy" for name in ARRAY_DTYPES}
        features_file = f"features-{number:03}.npy"
        if not required <= files.keys() <= required | {features_file}:
            raise ValueError(f"the files of shard {number} must be {sorted(required)}")
        if version > 1 and (type(checksum) is int) != (features_file in files):
            raise ValueError("features_checksum must be a number if the shard has features")
        are_rows = isinstance(removed, list) and all(
            type(row) is int and 0 <= row < n_rows for row in removed
        )
        if not are_rows or len(set(removed)) < len(removed):
            raise ValueError(f"removed must be distinct row numbers below {n_rows}")
        return cls(folder, number, n_rows, files, tuple(removed), checksum, version)

    @property
    def entry(self) -> dict[str, Any]:
        """Entry of the shard in ``index.json``."""
        return {
            "number": self.number,
            "rows": self.n_rows,
            "files": self.files,
            "features_checksum": self.features_checksum,
            "removed": list(self.removed),
        }

    @cached_property
    def is_active(self) -> npt.NDArray[np.bool_] | None:
        """Mask that is False for removed rows, ``(n,)``, or None if no row was removed."""
        if not self.removed:
            return None
        is_active = np.ones(self.n_rows, bool)
        is_active[list(self.removed)] = False
        return is_active

    @cached_property
    def file_states(self) -> pa.Table:
        """Stored paths and file states of all rows, including removed rows."""
        return self._read("rows", "parquet", lambda _: self._parquet.read().combine_chunks())

    @cached_property
    def _parquet(self) -> pq.ParquetFile:
        return self._read("rows", "parquet", _open_shard_parquet)

    @property
    def active_file_states(self) -> pa.Table:
        """Stored paths and file states of the rows that were not removed."""
        if self.is_active is None:
            return self.file_states
        return self.file_states.filter(pa.array(self.is_active))

    @property
    def feature_width(self) -> int | None:
        """Width of the image features, or None if no features are stored."""
        features = self._mapped_arrays.get("features")
        return None if features is None else features.shape[1]

    @cached_property
    def sorted_logits(self) -> ConjunctionSearchLogits:
        """Log-odds, raw scores and sorted row numbers, the input of a search."""
        arrays = self._mapped_arrays
        return ConjunctionSearchLogits(
            arrays["logits"], arrays["scores"], arrays["order"], self.is_active
        )

    @cached_property
    def _mapped_arrays(self) -> dict[str, Any]:
        """Arrays of all files, mapped into memory, by name."""
        names = [*ARRAY_DTYPES]
        names += ["features"] if f"features-{self.number:03}.npy" in self.files else []
        return {name: self._read(name, "npy", map_array) for name in names}

    @cached_property
    def _mappings(self) -> dict[str, mmap]:
        """Memory mappings of the arrays by name, except of empty arrays, which are not mapped."""
        mappings = {name: _mapping_of_shard_array(a) for name, a in self._mapped_arrays.items()}
        return {name: mapping for name, mapping in mappings.items() if mapping is not None}

    @cached_property
    def _checksums(self) -> npt.NDArray[np.uint32]:
        return np.array(self._mapped_arrays["checksums"])

    @cached_property
    def _verified_columns(self) -> set[int]:
        """Columns whose checksums `verify_checksums` has compared."""
        return set()

    def check_files(self, c: int) -> None:
        """Open every file and check its size and shape.

        The files stay open, so the shard stays readable after another process replaces the files.

        Args:
            c: Number of labels of the index.

        Raises:
            DataError: If a file is missing or cannot be read, or its size or shape differs from the
                manifest.
        """
        for name, size in self.files.items():
            file = self.folder / name
            actual_size = _shard_file_size(file)
            if actual_size != size:
                actual = "no file" if actual_size is None else f"{actual_size} bytes"
                raise _damaged_shard_error(file, f"expected {size} bytes, got {actual}")
        for name, dtype in ARRAY_DTYPES.items():
            array = self._checksums if name == "checksums" else self._mapped_arrays[name]
            n_checksums = len(CHECKSUMMED_ARRAYS[self.version])
            shape = (n_checksums, c) if name == "checksums" else (c, self.n_rows)
            self._check_array(name, array, shape, dtype)
        if self._parquet.metadata.num_rows != self.n_rows:
            file = self._file("rows", "parquet")
            raise _damaged_shard_error(file, f"expected {self.n_rows} rows")
        features = self._mapped_arrays.get("features")
        if features is not None:
            width = features.shape[1] if features.ndim == 2 else 0
            shape = (self.n_rows, width)
            self._check_array("features", features, shape, np.dtype(np.float16))

    def check_not_truncated(self) -> None:
        """Check that no mapped file became shorter than its mapping, which takes microseconds.

        Reading a mapping beyond the end of its file ends the process with the signal SIGBUS. A file
        that another program truncates between this check and the reading still has this effect.

        Raises:
            DataError: If a file became shorter.
        """
        for name, memory in self._mappings.items():
            if memory.size() < len(memory):
                reason = f"expected {len(memory)} bytes, got {memory.size()} bytes"
                raise _damaged_shard_error(self._file(name, "npy"), reason)

    def verify_checksums(self, columns: Iterable[int]) -> None:
        """Compare the arrays of some labels with their checksums, once for each label.

        Args:
            columns: Columns of the labels.

        Raises:
            DataError: If a checksum does not match, or a file was truncated, which means that a
                file is damaged.
        """
        self.check_not_truncated()
        names = CHECKSUMMED_ARRAYS[self.version]
        for column in set(columns) - self._verified_columns:
            for name, checksums in zip(names, self._checksums, strict=True):
                if shard_checksum(getattr(self.sorted_logits, name)[column]) != checksums[column]:
                    raise _damaged_shard_error(
                        self._file(name, "npy"), f"the checksum of label {column} does not match"
                    )
            self._verified_columns.add(column)

    def find_rows(self, paths: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows with the given stored paths, except removed rows."""
        valid_paths = pa.array(filter(is_valid_file_state_path, paths), pa.string())
        is_match = pc.is_in(self.file_states["path"], value_set=valid_paths).to_numpy()
        return np.flatnonzero(is_match if self.is_active is None else is_match & self.is_active)

    def with_removed_rows(self, rows: Iterable[int]) -> "Shard":
        """Return the shard, or a copy in which the given rows are also marked as removed."""
        removed = tuple(sorted({*self.removed, *map(int, rows)}))
        return self if removed == self.removed else replace(self, removed=removed)

    def active_rows(self) -> ShardRows:
        """Return the rows that were not removed, whose arrays are verified when they are read.

        Writing damaged rows to a new shard would give them valid checksums. Therefore reading an
        array whose checksum does not match raises DataError.
        """
        return ShardRows(
            self.active_file_states,
            len(self.sorted_logits.logits),
            self.feature_width,
            self._active_label_line,
            self._active_feature_blocks,
        )

    def _active_label_line(self, name: str, column: int) -> LabelLine:
        self.verify_checksums([column])
        line: LabelLine = getattr(self.sorted_logits, name)[column]
        return line if self.is_active is None else line[self.is_active]

    def _active_feature_blocks(self) -> Iterator[npt.NDArray[np.float16]]:
        """Yield the features of active rows; after the last block, compare the checksum."""
        if "features" not in self._mapped_arrays:
            return
        self.check_not_truncated()
        features, checksum = self._mapped_arrays["features"], 0
        for start in range(0, self.n_rows, FEATURE_BLOCK_ROWS):
            rows = slice(start, start + FEATURE_BLOCK_ROWS)
            block = features[rows]
            checksum = extend_shard_checksum(checksum, block)
            yield block if self.is_active is None else block[self.is_active[rows]]
        if self.features_checksum not in (None, checksum):
            file = self._file("features", "npy")
            raise _damaged_shard_error(file, "the checksum does not match")

    def _check_array(
        self, name: str, array: npt.NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        if (array.shape, array.dtype) != (shape, dtype):
            file, actual = self._file(name, "npy"), f"{array.shape} of {array.dtype.str}"
            raise _damaged_shard_error(file, f"expected shape {shape}, got {actual}")

    def _file(self, name: str, suffix: str) -> Path:
        return self.folder / f"{name}-{self.number:03}.{suffix}"

    def _read(self, name: str, suffix: str, reader: Any) -> Any:
        file = self._file(name, suffix)
        try:
            return reader(file)
        except (OSError, ValueError, pa.ArrowInvalid) as error:
            raise _damaged_shard_error(file, "the file cannot be read") from error


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


def _open_shard_parquet(file: Path) -> pq.ParquetFile:
    check_regular_file(file)
    return pq.ParquetFile(file, page_checksum_verification=True)


def _damaged_shard_error(file: Path, reason: str) -> DataError:
    return DataError(
        f"{file} is damaged: {reason}. Restore the file, or build the index again "
        f"(`surelabel index`)."
    )
