"""Files of an index shard, which are mapped into memory and checked for damage.

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

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.array_files import map_array
from surelabel.errors import DataError
from surelabel.file_readers import check_regular_file
from surelabel.retrieval.shard_checksums import shard_checksum

INDEX_VERSION = 2
CHECKSUMMED_ARRAYS = {1: ("logits", "order"), INDEX_VERSION: ("logits", "scores", "order")}
ARRAY_DTYPES = {
    "logits": np.dtype(np.float32),
    "scores": np.dtype(np.float32),
    "order": np.dtype(np.int32),
    "checksums": np.dtype(np.uint32),
}


@dataclass(frozen=True)
class ShardFiles:
    """Files of a shard; a file is opened and mapped when it is first read, and then stays open.

    Attributes:
        folder: Folder of the index.
        number: Shard number, which is part of the file names.
        n_rows: Number of all rows, n, including removed rows.
        sizes: Expected size of each file in bytes, by file name.
        version: Version of the index that contains the shard.
    """

    folder: Path
    number: int
    n_rows: int
    sizes: dict[str, int]
    version: int

    @cached_property
    def file_states(self) -> pa.Table:
        """Stored paths and file states of all rows."""
        return self._read("rows", lambda _: self._parquet.read().combine_chunks())

    def read_paths(self) -> pa.ChunkedArray:
        """Return the stored paths of all rows, which are not kept in memory."""
        return self._read("rows", lambda _: self._parquet.read(columns=["path"])["path"])

    @cached_property
    def _parquet(self) -> pq.ParquetFile:
        return self._read("rows", _open_shard_parquet)

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """Arrays of all files, mapped into memory, by name."""
        names = [*ARRAY_DTYPES]
        names += ["features"] if f"features-{self.number:03}.npy" in self.sizes else []
        return {name: self._read(name, map_array) for name in names}

    @cached_property
    def _mappings(self) -> dict[str, mmap]:
        """Memory mappings of the arrays by name, except of empty arrays, which are not mapped."""
        mappings = {name: _mapping_of_shard_array(a) for name, a in self.arrays.items()}
        return {name: mapping for name, mapping in mappings.items() if mapping is not None}

    @cached_property
    def _checksums(self) -> npt.NDArray[np.uint32]:
        return np.array(self.arrays["checksums"])

    @cached_property
    def _verified_columns(self) -> set[int]:
        """Columns whose checksums `verify_checksums` has compared."""
        return set()

    def check(self, n_labels: int) -> None:
        """Open every file and check its size and shape.

        The files stay open, so the shard stays readable after another process replaces the files.

        Args:
            n_labels: Number of labels of the index, c.

        Raises:
            DataError: If a file is missing or cannot be read, or its size or shape differs from the
                manifest.
        """
        for name, size in self.sizes.items():
            file = self.folder / name
            actual_size = _shard_file_size(file)
            if actual_size != size:
                actual = "no file" if actual_size is None else f"{actual_size} bytes"
                raise _damaged_shard_error(file, f"expected {size} bytes, got {actual}")
        for name, dtype in ARRAY_DTYPES.items():
            array = self._checksums if name == "checksums" else self.arrays[name]
            n_checksums = len(CHECKSUMMED_ARRAYS[self.version])
            shape = (n_checksums, n_labels) if name == "checksums" else (n_labels, self.n_rows)
            self._check_array(name, array, shape, dtype)
        if self._parquet.metadata.num_rows != self.n_rows:
            raise self.damage_error("rows", f"expected {self.n_rows} rows")
        features = self.arrays.get("features")
        if features is not None:
            width = features.shape[1] if features.ndim == 2 else 0
            self._check_array("features", features, (self.n_rows, width), np.dtype(np.float16))

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
                raise self.damage_error(name, reason)

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
                if shard_checksum(self.arrays[name][column]) != checksums[column]:
                    raise self.damage_error(name, f"the checksum of label {column} does not match")
            self._verified_columns.add(column)

    def damage_error(self, name: str, reason: str) -> DataError:
        """Return the error for a damaged file.

        Args:
            name: Name of the file without number and suffix, such as ``logits``.
            reason: Damage of the file, as a clause.
        """
        return _damaged_shard_error(self._path(name), reason)

    def _check_array(
        self, name: str, array: npt.NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        if (array.shape, array.dtype) != (shape, dtype):
            actual = f"{array.shape} of {array.dtype.str}"
            raise self.damage_error(name, f"expected shape {shape}, got {actual}")

    def _path(self, name: str) -> Path:
        suffix = "parquet" if name == "rows" else "npy"
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


def _open_shard_parquet(file: Path) -> pq.ParquetFile:
    check_regular_file(file)
    return pq.ParquetFile(file, page_checksum_verification=True)


def _damaged_shard_error(file: Path, reason: str) -> DataError:
    return DataError(
        f"{file} is damaged: {reason}. Restore the file, or build the index again "
        f"(`surelabel index`)."
    )
